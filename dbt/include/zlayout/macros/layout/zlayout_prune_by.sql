{#- where {{ zlayout_prune_by('f.id', 'select id from …') }}: the query's values as a condition that file statistics can use. -#}
{% macro zlayout_prune_by(column, query, max_values=1000, max_ranges=100) %}
  {{ return(adapter.prune_by(column, query, max_values, max_ranges) if execute and not flags.EMPTY else 'true') }}
{% endmacro %}
