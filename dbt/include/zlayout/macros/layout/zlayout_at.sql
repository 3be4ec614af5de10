{#- select * from {{ zlayout_at(ref('m'), version=3) }}: an older version of a table, by version, instant or timestamp. -#}
{% macro zlayout_at(relation, version=none, instant=none, timestamp=none) %}
  {{ return(adapter.relation_at(relation, model, version, instant, timestamp) if execute else relation) }}
{% endmacro %}
