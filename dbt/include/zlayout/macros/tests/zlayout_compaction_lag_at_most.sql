{#- Fails if the logs of a merge-on-read table come from too many delta commits, are too large, or are too old. -#}
{% test zlayout_compaction_lag_at_most(model, commits=none, log_bytes=none, hours=none) %}
  {%- for row in adapter.compaction_problems(model, commits, log_bytes, hours) -%}
    {{ ' union all ' if not loop.first }}select {{ adapter.string_literal(row['measure']) }} as measure, cast({{ row['found'] }} as double) as found,
      cast({{ row['at_most'] }} as double) as at_most, {{ adapter.string_literal(row['what_to_do']) }} as what_to_do
  {%- else -%}
    select cast(null as string) as measure, cast(null as double) as found, cast(null as double) as at_most,
      cast(null as string) as what_to_do where false
  {%- endfor -%}
{% endtest %}
