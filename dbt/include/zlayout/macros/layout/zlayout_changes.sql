{#- select * from {{ zlayout_changes(ref('orders')) }}: the rows that changed since the last run of this model, with _zl_change. -#}
{% macro zlayout_changes(relation, unique_key=none) %}
  {%- if not execute -%}
    {{ return(relation) }}
  {%- endif -%}
  {{ return(adapter.changes_relation(relation, this, model, unique_key, is_incremental())) }}
{% endmacro %}
