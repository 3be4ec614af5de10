{#- dbt run-operation zlayout_publish --args '{model: …, formats: [iceberg], publish_catalog: …}'; off: true ends it. Without formats, publishes what is missing; without a model, for all tables. -#}
{% macro zlayout_publish(model=none, formats=none, publish_catalog=none, off=false, json=false) %}
  {% do print(adapter.publish_report(model, graph.nodes, formats, publish_catalog, off, json)) %}
{% endmacro %}
