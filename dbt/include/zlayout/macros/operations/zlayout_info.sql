{#- dbt run-operation zlayout_info --args '{model: …}'; json: true for programs. -#}
{% macro zlayout_info(model, json=false) %}
  {% do print(adapter.information_report(adapter.table_named(model, graph.nodes), json)) %}
{% endmacro %}
