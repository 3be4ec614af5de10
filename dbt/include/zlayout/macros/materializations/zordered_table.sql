{% materialization zordered_table, adapter='zlayout', supported_languages=['sql'] %}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table') -%}

  {% do adapter.check_zordered_model(model) %}
  {{ zlayout_run_hooks(pre_hooks | sort(attribute='transaction')) }}

  {%- set query = zlayout_query_under_contract(compiled_code) | trim -%}
  {% do write(query) %}
  {% do store_result('main', response=zlayout_write(existing_relation, target_relation, query)) %}

  {% do apply_grants(target_relation, config.get('grants'), should_revoke(existing_relation, full_refresh_mode=True)) %}
  {{ zlayout_run_hooks(post_hooks | sort(attribute='transaction', reverse=true)) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}


{#- A catalog cannot hold a view and a table of one name: the view goes when the table is whole, so that a failing query,
    or one that reads the view, still finds it. -#}
{% macro zlayout_write(existing_relation, target_relation, query) %}
  {%- if existing_relation is none or not existing_relation.is_view -%}
    {{ return(adapter.write_zordered_table(target_relation, query, model)) }}
  {%- endif -%}
  {%- set whole_relation = make_intermediate_relation(target_relation) -%}
  {%- set response = adapter.write_zordered_table(whole_relation, query, model) -%}
  {% do adapter.drop_relation(existing_relation) %}
  {% do adapter.rename_relation(whole_relation, target_relation) %}
  {{ return(response) }}
{% endmacro %}


{#- The columns of an enforced contract, in its order; a query that differs from the contract ends the run here. -#}
{% macro zlayout_query_under_contract(compiled_code) %}
  {%- if config.get('contract').enforced -%}
    {{ get_assert_columns_equivalent(compiled_code) }}
    {{ get_select_subquery(compiled_code) }}
  {%- else -%}
    {{ compiled_code }}
  {%- endif -%}
{% endmacro %}


{#- Spark has no transactions: hooks outside of one run as the others do, without the `commit` that dbt puts before them. -#}
{% macro zlayout_run_hooks(hooks) %}
  {%- set plain_hooks = [] -%}
  {%- for hook in hooks -%}
    {%- do plain_hooks.append({'sql': hook.get('sql'), 'transaction': true}) -%}
  {%- endfor -%}
  {{ run_hooks(plain_hooks) }}
{% endmacro %}
