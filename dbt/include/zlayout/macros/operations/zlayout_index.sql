{#- dbt run-operation zlayout_index --args '{model: …, bloom: [id], stats_expressions: [lower(email)]}'; drop: true takes these away; without both: adds what files lack. -#}
{% macro zlayout_index(model, bloom=none, drop=false, json=false, stats_expressions=none) %}
  {% do print(adapter.index_report(model, graph.nodes, bloom, drop, json, stats_expressions)) %}
{% endmacro %}
