{#- dbt run-operation zlayout_index --args '{model: …, bloom: [id], lookup: [order_id], stats_expressions: [lower(email)]}'; drop: true takes these away; schedule: true only changes the settings; execute: true or nothing adds what files lack. -#}
{% macro zlayout_index(model, bloom=none, lookup=none, stats_expressions=none, drop=false, schedule=false, execute=false, json=false) %}
  {% do print(adapter.index_report(model, graph.nodes, bloom, lookup, stats_expressions, drop, schedule, execute, json)) %}
{% endmacro %}
