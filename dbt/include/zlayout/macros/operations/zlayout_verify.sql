{#- dbt run-operation zlayout_verify --args '{model: …, data: true}'; data: also read the columns; without model all tables with an index. -#}
{% macro zlayout_verify(model=none, data=false, json=false) %}
  {% do print(adapter.verify_report(model, graph.nodes, graph.sources, data, json)) %}
{% endmacro %}
