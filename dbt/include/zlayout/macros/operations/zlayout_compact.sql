{#- dbt run-operation zlayout_compact --args '{model: …}': plans a compaction and merges logs into base files. schedule: true only plans. execute: true
    executes the pending plans, and plan: an instant only that one. Without model: all merge-on-read tables of the project. strategy, max_bytes, where
    and logs_only shape a new plan. -#}
{% macro zlayout_compact(model=none, json=false) %}
  {% do print(adapter.compaction_report(model, graph.nodes, json, **kwargs)) %}
{% endmacro %}
