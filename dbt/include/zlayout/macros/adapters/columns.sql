{#- Columns, as dbt's own macros expect them; dbt-spark answers with the rows of a DESCRIBE. -#}
{% macro zlayout__get_columns_in_relation(relation) %}
  {{ return(adapter.get_columns_in_relation(relation)) }}
{% endmacro %}
