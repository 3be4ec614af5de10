{#- dbt run-operation zlayout_index --args '{model: …, bloom: [id], lookup: [order_id]}'; drop: true takes the indexes of these columns away; without columns: adds what files lack. -#}
{% macro zlayout_index(model, bloom=none, lookup=none, drop=false, json=false) %}
  {% do print(adapter.index_report(model, graph.nodes, bloom, lookup, drop, json)) %}
{% endmacro %}
