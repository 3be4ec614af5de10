{#- dbt run-operation zlayout_lock writes layout.lock.json; with --args '{check: true}' it fails if a condition reads more than the file allows. -#}
{% macro zlayout_lock(model=none, check=false, path=none, tolerance=none, json=false) %}
  {% do zlayout__print_report(adapter.lock_report(model, dict(graph.nodes, **graph.exposures), check, path, tolerance, json)) %}
{% endmacro %}
