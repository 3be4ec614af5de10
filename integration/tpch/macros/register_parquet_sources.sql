{#- Every source with `meta: {parquet: <folder>}` becomes an external table on that folder, so that models can read it. -#}
{% macro register_parquet_sources() %}
  {%- if execute and flags.WHICH in ('run', 'build', 'seed', 'test', 'snapshot') -%}
    {%- for source in graph.sources.values() if source.meta.parquet -%}
      {%- set relation = api.Relation.create(schema=source.schema, identifier=source.identifier) -%}
      {%- set folder = env_var('TPCH_HOME', 'data') ~ '/parquet/' ~ source.meta.parquet -%}
      {% do run_query('create schema if not exists ' ~ source.schema) %}
      {% do run_query('drop table if exists ' ~ relation) %}
      {% do run_query("create table " ~ relation ~ " using parquet location '" ~ folder ~ "'") %}
    {%- endfor -%}
  {%- endif -%}
{% endmacro %}
