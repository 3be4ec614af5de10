{#- Fails for each condition of layout.lock.json on this model that reads more than the file allows. -#}
{% test zlayout_reads_as_locked(model, path=none) %}
  {%- set types = {'table': 'string', 'condition': 'string', 'sentence': 'string', 'cause': 'string'} -%}
  {{ zlayout_rows(adapter.lock_problems(model, path), types) }}
{% endtest %}
