{#- dbt-spark alters a table for its constraints unless its format says it is not delta; here no format means parquet. -#}
{% macro zlayout__persist_constraints(relation, model) %}
  {%- if config.get('contract').enforced -%}
    {%- if config.get('file_format') == 'delta' -%}
      {{ return(spark__persist_constraints(relation, model)) }}
    {%- elif zlayout_has_constraints(model) -%}
      {% do exceptions.warn(relation ~ ': constraints of a plain table are not enforced; a zordered_table enforces not_null') %}
    {%- endif -%}
  {%- endif -%}
{% endmacro %}


{% macro zlayout_has_constraints(model) %}
  {{ return((model.constraints or model.columns.values() | selectattr('constraints') | list) | length > 0) }}
{% endmacro %}
