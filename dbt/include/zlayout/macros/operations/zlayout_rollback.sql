{#- dbt run-operation zlayout_rollback --args '{model: …, version: …}', or with instant or timestamp. Commits a new version that equals the old one. -#}
{% macro zlayout_rollback(model, version=none, instant=none, timestamp=none, json=false) %}
  {%- set table = adapter.table_named(model, graph.nodes) -%}
  {% do print(adapter.rollback_report(table, version, instant, timestamp, json)) %}
{% endmacro %}
