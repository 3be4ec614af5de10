{% macro values_of(column, query, max_values=1000, max_ranges=100) %}
  {% do print(zlayout_prune_by(column, query, max_values, max_ranges)) %}
{% endmacro %}
