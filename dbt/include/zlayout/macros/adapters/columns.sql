{#- Returns columns, which dbt's own macros expect. dbt-spark returns the rows of a DESCRIBE. -#}
{% macro zlayout__get_columns_in_relation(relation) %}
  {{ return(adapter.get_columns_in_relation(relation)) }}
{% endmacro %}
