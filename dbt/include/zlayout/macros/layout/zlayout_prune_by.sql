{#- where {{ zlayout_prune_by('f.id', 'select id from …') }}: turns the values of a query into a condition that can skip files. -#}
{% macro zlayout_prune_by(column, query, max_values=1000, max_ranges=100) %}
  {{ return(adapter.prune_by(column, query, max_values, max_ranges) if execute and not flags.EMPTY else 'true') }}
{% endmacro %}
