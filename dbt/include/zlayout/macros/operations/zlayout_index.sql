{#- dbt run-operation zlayout_index --args '{model: …, bloom: [id]}'; drop: true takes the filters of these columns away; without bloom: adds the filters that files lack. -#}
{% macro zlayout_index(model, bloom=none, drop=false, json=false) %}
  {% do print(adapter.index_report(model, graph.nodes, bloom, drop, json)) %}
{% endmacro %}
