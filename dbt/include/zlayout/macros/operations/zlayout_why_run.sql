{#- dbt run-operation zlayout_why_run --args '{model: …}'; without a model for all of them. json: true is for programs. -#}
{% macro zlayout_why_run(model=none, json=false) %}
  {% do print(adapter.why_run_report(model, graph.nodes, json)) %}
{% endmacro %}
