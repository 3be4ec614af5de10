{#- Fails for each file that is missing from the index, that the index has wrong, or that no version lists. -#}
{% test zlayout_index_fresh(model) %}
  {{ zlayout_rows(adapter.index_status(model), {'path': 'string', 'reason': 'string'}) }}
{% endtest %}
