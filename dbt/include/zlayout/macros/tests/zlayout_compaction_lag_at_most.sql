{#- Fails if the logs of a merge-on-read table come from too many delta commits, are too large, or are too old. -#}
{% test zlayout_compaction_lag_at_most(model, commits=none, log_bytes=none, hours=none) %}
  {%- set types = {'measure': 'string', 'found': 'double', 'at_most': 'double', 'what_to_do': 'string'} -%}
  {{ zlayout_rows(adapter.compaction_problems(model, commits, log_bytes, hours), types) }}
{% endtest %}
