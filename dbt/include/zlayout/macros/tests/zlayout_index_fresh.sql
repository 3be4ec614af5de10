{#- Fails for each file that is missing from the index, that the index has wrong, or that no version lists. -#}
{% test zlayout_index_fresh(model) %}
  {%- set stale = adapter.index_status(model) -%}
  {%- if stale -%}
    select path, reason from values
    {%- for row in stale %}
      ({{ adapter.string_literal(row.path) }}, {{ adapter.string_literal(row.reason) }}){{ ',' if not loop.last }}
    {%- endfor %}
    as stale (path, reason)
  {%- else -%}
    select cast(null as string) as path, cast(null as string) as reason where false
  {%- endif -%}
{% endtest %}
