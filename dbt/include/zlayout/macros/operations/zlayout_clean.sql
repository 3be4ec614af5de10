{#- dbt run-operation zlayout_clean --args '{model: …, dry_run: true, retain_hours: …}'. Without model: all tables of the project. -#}
{% macro zlayout_clean(model=none, dry_run=false, retain_versions=none, retain_hours=none, json=false) %}
  {% do print(adapter.clean_report(model, graph.nodes, dry_run, retain_versions, retain_hours, json)) %}
{% endmacro %}
