{#- dbt run-operation zlayout_history --args '{model: …}'. limit: the number of newest versions; json: true is for programs. -#}
{% macro zlayout_history(model, limit=none, json=false) %}
  {% do print(adapter.history_report(adapter.table_named(model, graph.nodes), limit, json)) %}
{% endmacro %}
