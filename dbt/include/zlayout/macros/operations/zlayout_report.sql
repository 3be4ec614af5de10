{#- dbt run-operation zlayout_report --args '{path: report.html}'. Without model: all tables of the project; json: true is for programs, with or without path. -#}
{% macro zlayout_report(path=none, model=none, json=false) %}
  {% do print(adapter.layout_report(project_name, model, dict(graph.nodes, **graph.exposures), path, json)) %}
{% endmacro %}
