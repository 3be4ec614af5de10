{#- dbt run-operation zlayout_publish --args '{model: …, formats: [delta]}'; off: true withdraws. Without model: publishes what is missing of all tables. -#}
{% macro zlayout_publish(model=none, formats=none, off=false, json=false) %}
  {% do print(adapter.publish_report(model, graph.nodes, [] if off else formats, json)) %}
{% endmacro %}
