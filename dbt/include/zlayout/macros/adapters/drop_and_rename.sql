{#- Spark does not remove a table's folder when it drops the table, so the adapter drops both. dbt-spark drops tables of other formats. -#}
{% macro zlayout__drop_relation(relation) %}
  {%- if relation.is_plain_table -%}
    {% do adapter.drop_table(relation) %}
  {%- else -%}
    {{ return(spark__drop_relation(relation)) }}
  {%- endif -%}
{% endmacro %}


{% macro zlayout__rename_relation(from_relation, to_relation) %}
  {%- if from_relation.is_plain_table -%}
    {% do adapter.rename_table(from_relation, to_relation) %}
  {%- else -%}
    {{ return(spark__rename_relation(from_relation, to_relation)) }}
  {%- endif -%}
{% endmacro %}
