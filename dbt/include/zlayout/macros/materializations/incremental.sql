{% materialization incremental, adapter='zlayout', supported_languages=['sql', 'python'] %}
  {%- if not zlayout_writes_format() -%}
    {{ return(materialization_incremental_spark()) }}
  {%- endif -%}
  {{ return(zlayout_materialize(keeps_rows=true)) }}
{% endmaterialization %}


{#- For dbt only `incremental` keeps its rows. A zordered_table with an incremental_strategy keeps them too. -#}
{% macro is_incremental() %}
  {%- if not execute or this is none -%}
    {#- A unit test has no table. -#}
    {{ return(false) }}
  {%- endif -%}
  {%- set keeps_rows = model.config.materialized == 'incremental'
    or (model.config.materialized == 'zordered_table' and model.config.get('incremental_strategy') is not none) -%}
  {%- set relation = adapter.get_relation(this.database, this.schema, this.table) -%}
  {{ return(keeps_rows and relation is not none and relation.is_table and not should_full_refresh()) }}
{% endmacro %}
