{#- dbt run-operation zlayout_verify --args '{model: …, data: true}'. data: true also reads the columns. Without model: all tables with an index. -#}
{% macro zlayout_verify(model=none, data=false, json=false) %}
  {% do print(adapter.verify_report(model, graph.nodes, graph.sources, data, json)) %}
{% endmacro %}
