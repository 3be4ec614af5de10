{#- As a post-hook: zlayout_refresh_index(this), or any other relation. dbt run-operation zlayout_refresh_index --args '{model: …}'. Without model: all tables with an index. -#}
{% macro zlayout_refresh_index(model=none, take_orphans=false, drop_missing=false, json=false) %}
  {%- if model is none or model is string -%}
    {% do print(adapter.refresh_report(model, graph.nodes, graph.sources, take_orphans, drop_missing, json)) %}
  {%- elif execute -%}
    {% do adapter.refresh_index(model, take_orphans, drop_missing) %}
  {%- endif -%}
  {{ return('') }}
{% endmacro %}
