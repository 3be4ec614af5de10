{#- dbt run-operation zlayout_lint --args '{model: …}'; without a model for all tables. format: text, json or sarif; fail: true ends with an error if a condition cannot skip. -#}
{% macro zlayout_lint(model=none, format='text', fail=false, json=false) %}
  {% do zlayout__print_report(adapter.lint_report(model, graph.nodes, format, fail, json)) %}
{% endmacro %}
