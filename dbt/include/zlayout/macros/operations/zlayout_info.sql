{#- dbt run-operation zlayout_info --args '{model: …}'. columns: the columns to measure, instead of the clustering keys; verbose: true shows all; json: true is for programs. -#}
{% macro zlayout_info(model, columns=none, json=false, verbose=false) %}
  {% do print(adapter.information_report(adapter.table_named(model, graph.nodes), columns, json, verbose)) %}
{% endmacro %}
