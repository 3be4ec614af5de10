{#- Replaces the table with the file's rows in one commit. dbt's default materialization loads other formats. -#}
{% materialization seed, adapter='zlayout' %}
  {%- if not zlayout_writes_format() -%}
    {{ return(materialization_seed_default()) }}
  {%- endif -%}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- if existing_relation is not none and existing_relation.is_view -%}
    {% do exceptions.raise_compiler_error("Cannot seed to '" ~ existing_relation ~ "', because it is a view; drop it, or give the seed an alias") %}
  {%- endif -%}
  {%- set keeps_columns = existing_relation is not none and not should_full_refresh() -%}
  {% do (zlayout_own(existing_relation) if keeps_columns) %}

  {% do adapter.check_model(model) %}
  {%- set agate_table = load_agate_table() -%}
  {%- do store_result('agate_table', response='OK', agate_table=agate_table) -%}
  {% do adapter.run_hooks(run_hooks, 'pre-hook', pre_hooks | sort(attribute='transaction')) %}

  {% do store_result('main', response=adapter.write_seed(target_relation, agate_table, model, keeps_columns)) %}

  {{ return(zlayout_finish(existing_relation, target_relation, replaced=should_full_refresh())) }}
{% endmaterialization %}
