{#- An INSERT by Spark into a table with versions would stay invisible: no version lists its files. -#}
{% materialization incremental, adapter='zlayout', supported_languages=['sql', 'python'] %}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- if existing_relation is not none and not should_full_refresh() and adapter.is_versioned(existing_relation) -%}
    {% do exceptions.raise_compiler_error(
      existing_relation ~ " is a zordered_table, and an incremental model cannot add to it: run it once with --full-refresh, "
      ~ "or set materialized='zordered_table' again") %}
  {%- endif -%}
  {{ return(materialization_incremental_spark()) }}
{% endmaterialization %}
