{#- dbt run-operation zlayout_advise --args '{model: …}'; without a model for all tables. predicates: conditions instead of the project's queries; json: true is for programs. -#}
{% macro zlayout_advise(model=none, predicates=none, min_gain=none, json=false) %}
  {% do print(adapter.advise_report(model, dict(graph.nodes, **graph.exposures), predicates, min_gain, json)) %}
{% endmacro %}
