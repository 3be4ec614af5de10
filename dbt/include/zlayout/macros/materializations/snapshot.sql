{#- dbt's staging query finds what changed, and one merge writes it. dbt-spark takes snapshots in other formats. -#}
{% materialization snapshot, adapter='zlayout' %}
  {%- if not zlayout_writes_format() -%}
    {{ return(materialization_snapshot_spark()) }}
  {%- endif -%}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- if existing_relation is not none and not existing_relation.is_table -%}
    {% do exceptions.relation_wrong_type(existing_relation, 'table') %}
  {%- endif -%}

  {% do adapter.check_model(model) %}
  {% do adapter.run_hooks(run_hooks, 'pre-hook', pre_hooks | sort(attribute='transaction')) %}
  {% do zlayout_run_header() %}

  {%- set exists = existing_relation is not none -%}
  {%- set make_strategy = strategy_dispatch(config.get('strategy')) -%}
  {%- set strategy = make_strategy(model, 'snapshotted_data', 'source_data', model['config'], exists) -%}
  {% do store_result('main', response=zlayout_take_snapshot(strategy, target_relation, exists)) %}

  {{ return(zlayout_finish(existing_relation, target_relation, replaced=false)) }}
{% endmaterialization %}


{% macro zlayout_take_snapshot(strategy, target_relation, exists) %}
  {%- if not exists -%}
    {%- set query = build_snapshot_table(strategy, model['compiled_code']) -%}
    {% do check_time_data_types(query) %}
    {% do write(query) %}
    {{ return(adapter.write_table(target_relation, query, model)) }}
  {%- endif -%}
  {%- set columns = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() -%}
  {% do adapter.assert_valid_snapshot_target_given_strategy(zlayout_own(target_relation), columns, strategy) %}
  {%- set query = snapshot_staging_table(strategy, model['compiled_code'], target_relation) -%}
  {% do check_time_data_types(query) %}
  {% do write(query) %}
  {{ return(adapter.write_snapshot(target_relation, query, model, columns)) }}
{% endmacro %}
