{#- Fails for each cell of the index that contradicts the footers or, with data: true, the data. -#}
{% test zlayout_index_exact(model, data=false) %}
  {%- set types = {'path': 'string', 'column': 'string', 'cell': 'string', 'stored': 'string', 'found': 'string'} -%}
  {{ zlayout_rows(adapter.verify_index(model, data), types) }}
{% endtest %}
