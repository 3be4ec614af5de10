{#- Fails if a predicate skips less than this percentage of the files. -#}
{% test zlayout_prunes_at_least(model, predicate, percent) %}
  {%- set types = {'predicate': 'string', 'skipped_percent': 'double', 'at_least': 'double', 'kept_files': 'bigint', 'total_files': 'bigint',
    'what_to_do': 'string'} -%}
  {{ zlayout_rows(adapter.pruning_problems(model, predicate, percent), types) }}
{% endtest %}
