{#- As a post-hook zlayout_cluster(this), or of any relation; dbt run-operation zlayout_cluster --args '{model: …, where: …, max_bytes: …}'; without model
    all tables of the project. Any keyword of ZTable.cluster may be given; others come from the model's config. -#}
{% macro zlayout_cluster(model=none, json=false) %}
  {%- if model is none or model is string -%}
    {% do print(adapter.cluster_report(model, graph.nodes, json, **kwargs)) %}
  {%- elif execute -%}
    {%- set done = adapter.cluster(model, config.model.config if config.model else none, **kwargs) -%}
    {#- The line of the run tells the files that its hook leaves. -#}
    {%- set main = load_result('main') -%}
    {%- if main and model ~ '' == this ~ '' -%}
      {% do store_result('main', response=adapter.with_clustering(main.response, done)) %}
    {%- endif -%}
  {%- endif -%}
  {{ return('') }}
{% endmacro %}


{#- What zlayout_cluster would do, without a byte written. -#}
{% macro zlayout_cluster_plan(model=none, json=false) %}
  {% do print(adapter.cluster_report(model, graph.nodes, json, dry_run=true, **kwargs)) %}
{% endmacro %}
