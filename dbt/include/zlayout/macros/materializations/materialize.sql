{#- Writes a model as a table in one commit. The commit replaces all rows or, with `keeps_rows`, adds the new ones. -#}
{% macro zlayout_materialize(keeps_rows) %}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {#- `dbt retry` keeps --full-refresh, and runs only the failed batches of a model if others succeeded: the table holds these. -#}
  {%- set replaces = should_full_refresh() and not config.model.previous_batch_results -%}
  {%- set adds = keeps_rows and not replaces and existing_relation is not none and existing_relation.is_table -%}

  {% do adapter.check_model(model) %}
  {% do adapter.run_hooks(run_hooks, 'pre-hook', pre_hooks | sort(attribute='transaction')) %}
  {% do zlayout_run_header() %}

  {%- set code = zlayout_code_under_contract() | trim -%}
  {% do write(code) %}
  {%- if adds -%}
    {%- set response = adapter.write_increment(zlayout_own(existing_relation), code, model) -%}
  {%- else -%}
    {%- set response = zlayout_write(existing_relation, target_relation, code) -%}
  {%- endif -%}
  {% do store_result('main', response=response) %}

  {#- Hooks and grants follow also if a model with skip_unchanged had nothing to write. -#}
  {{ return(zlayout_finish(existing_relation, target_relation, replaced=not adds and response.instant is not none)) }}
{% endmacro %}


{#- A catalog cannot hold two relations with one name. A view, or a table of another format, is dropped only when the new table
    is complete. Until then a query that fails, or that reads the old relation, still finds it. -#}
{% macro zlayout_write(existing_relation, target_relation, code) %}
  {%- if existing_relation is none or existing_relation.is_plain_table -%}
    {{ return(adapter.write_table(target_relation, code, model, may_skip=existing_relation is not none and not should_full_refresh())) }}
  {%- endif -%}
  {%- set whole_relation = make_intermediate_relation(target_relation) -%}
  {%- set response = adapter.write_table(whole_relation, code, model) -%}
  {% do adapter.drop_relation(existing_relation) %}
  {% do adapter.rename_relation(whole_relation, target_relation) %}
  {{ return(response) }}
{% endmacro %}


{% macro zlayout_finish(existing_relation, target_relation, replaced) %}
  {% do apply_grants(target_relation, config.get('grants'), should_revoke(existing_relation, full_refresh_mode=replaced)) %}
  {%- set hooks = post_hooks | sort(attribute='transaction', reverse=true) -%}
  {% do adapter.run_hooks(run_hooks, 'post-hook', hooks, load_result('main').response) %}
  {{ return({'relations': [target_relation]}) }}
{% endmacro %}
