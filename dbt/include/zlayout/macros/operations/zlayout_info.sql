{#- dbt run-operation zlayout_info --args '{model: …}'; columns: the layout for these and not for the keys; json: true for programs. -#}
{% macro zlayout_info(model, columns=none, json=false) %}
  {% do print(adapter.information_report(adapter.table_named(model, graph.nodes), columns, json)) %}
{% endmacro %}
