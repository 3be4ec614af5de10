{#- Two Parquet tables cannot share files, so a clone is a view of the other table. Delta tables are cloned by dbt-spark. -#}
{% materialization clone, adapter='zlayout' %}
  {%- if config.get('file_format') == 'delta' -%}
    {{ return(materialization_clone_spark()) }}
  {%- endif -%}
  {{ return(zlayout_clone_as_view()) }}
{% endmaterialization %}


{% macro zlayout_clone_as_view() %}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- if not defer_relation or (existing_relation and not flags.FULL_REFRESH) -%}
    {% do log('Nothing to clone for ' ~ model.unique_id ~ ': it is not in the state, or it exists already', info=True) %}
    {{ return({'relations': []}) }}
  {%- endif -%}
  {%- if existing_relation and defer_relation.schema == this.schema and defer_relation.identifier == this.identifier -%}
    {% do log('State and target are one relation, skipping clone for relation ' ~ this, info=True) %}
    {{ return({'relations': []}) }}
  {%- endif -%}
  {%- if existing_relation and not existing_relation.is_view -%}
    {% do adapter.drop_relation(existing_relation) %}
  {%- endif -%}
  {%- set target_relation = this.incorporate(type='view') -%}
  {% call statement('main') %}
    create or replace view {{ target_relation }} as select * from {{ defer_relation }}
  {% endcall %}
  {{ return({'relations': [target_relation]}) }}
{% endmacro %}
