{#- dbt run-operation zlayout_explain --args '{sql: …}' or '{model: …, predicate: …}'. verbose: true lists everything; json: true is for programs. -#}
{% macro zlayout_explain(sql=none, model=none, predicate=none, json=false, verbose=false) %}
  {%- set table = adapter.table_named(model, graph.nodes) if model is not none else none -%}
  {%- set query = render(sql) if sql is not none else none -%}
  {% do print(adapter.explain_report(query, table, predicate, json, verbose)) %}
{% endmacro %}
