{#- dbt run-operation zlayout_rollback --args '{model: …, version: …}', or instant or timestamp: a new version equal to the old. -#}
{% macro zlayout_rollback(model, version=none, instant=none, timestamp=none, json=false) %}
  {%- set table = adapter.table_named(model, graph.nodes) -%}
  {% do print(adapter.rollback_report(table, version, instant, timestamp, json)) %}
{% endmacro %}
