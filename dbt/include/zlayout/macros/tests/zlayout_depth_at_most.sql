{#- Fails if the average depth of the files is above max. columns replace the clustering keys. -#}
{% test zlayout_depth_at_most(model, max, columns=none, column_name=none) %}
  {%- set types = {'columns': 'string', 'average_depth': 'double', 'at_most': 'double', 'what_to_do': 'string'} -%}
  {{ zlayout_rows(adapter.depth_problems(model, max, column_name if columns is none else columns), types) }}
{% endtest %}
