{#- As a post-hook: zlayout_cluster(this), or any other relation. dbt run-operation zlayout_cluster --args '{model: …, where: …, max_bytes: …}'.
    Without model: all tables of the project. Takes any keyword of ZTable.cluster. The config of the table's model gives the rest. -#}
{% macro zlayout_cluster(model=none, json=false) %}
  {%- if model is none or model is string -%}
    {% do print(adapter.cluster_report(model, graph.nodes, json, **kwargs)) %}
  {%- elif execute -%}
    {%- set own = config.model and model ~ '' == this ~ '' -%}
    {%- set done = adapter.cluster(model, config.model.config if own else none, nodes=graph.nodes, **kwargs) -%}
    {#- The run's line in the terminal includes what the hook did. -#}
    {%- set main = load_result('main') -%}
    {%- if main and own -%}
      {% do store_result('main', response=adapter.with_clustering(main.response, done)) %}
    {%- endif -%}
  {%- endif -%}
  {{ return('') }}
{% endmacro %}


{#- Prints what zlayout_cluster would do, and writes nothing. -#}
{% macro zlayout_cluster_plan(model=none, json=false) %}
  {% do print(adapter.cluster_report(model, graph.nodes, json, dry_run=true, **kwargs)) %}
{% endmacro %}
