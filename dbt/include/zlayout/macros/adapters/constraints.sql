{#- Called only for tables of other formats. dbt-spark would try to alter them unless their format says that they are not Delta. -#}
{% macro zlayout__persist_constraints(relation, model) %}
  {%- if config.get('contract').enforced -%}
    {%- if config.get('file_format') == 'delta' -%}
      {{ return(spark__persist_constraints(relation, model)) }}
    {%- elif zlayout_has_constraints(model) -%}
      {% do exceptions.warn(relation ~ ': constraints are not enforced for file_format ' ~ config.get('file_format') ~ '; for parquet, not_null is enforced') %}
    {%- endif -%}
  {%- endif -%}
{% endmacro %}


{% macro zlayout_has_constraints(model) %}
  {{ return((model.constraints or model.columns.values() | selectattr('constraints') | list) | length > 0) }}
{% endmacro %}
