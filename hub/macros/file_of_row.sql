{#- An expression for a property of the file that a row comes from: file_path or file_size. -#}
{% macro file_of_row(property) %}
  {{ return(adapter.dispatch('file_of_row', 'file_layout')(property)) }}
{% endmacro %}

{% macro default__file_of_row(property) %}
  {% do exceptions.raise_compiler_error('file_layout looks at files on Spark and Databricks only; this target is of the type ' ~ target.type) %}
{% endmacro %}

{% macro spark__file_of_row(property) %}
  {{ return('_metadata.' ~ property) }}
{% endmacro %}

{#- Refuses what has no files, and what would hide files from a test. -#}
{% macro check_whole_table(test, model) %}
  {%- if config.get('where') or config.get('limit') -%}
    {% do exceptions.raise_compiler_error(test ~ ' looks at whole tables; take `where` and `limit` away from the test') %}
  {%- endif -%}
  {#- `dbt compile` needs no connection. -#}
  {%- if execute and flags.WHICH in ('test', 'build') -%}
    {%- set found = load_relation(model) -%}
    {%- if found and found.is_view -%}
      {% do exceptions.raise_compiler_error(test ~ ': ' ~ model ~ ' is a view, which has no files; test the tables that it reads') %}
    {%- endif -%}
  {%- endif -%}
{% endmacro %}
