{#- dbt run-operation zlayout_info --args '{model: …}'. columns: the columns to measure, instead of the clustering keys; json: true is for programs. -#}
{% macro zlayout_info(model, columns=none, json=false) %}
  {% do print(adapter.information_report(adapter.table_named(model, graph.nodes), columns, json)) %}
{% endmacro %}
