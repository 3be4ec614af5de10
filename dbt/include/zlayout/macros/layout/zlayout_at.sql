{#- select * from {{ zlayout_at(ref('m'), version=3) }}: the table as it was; or by instant, or by timestamp. -#}
{% macro zlayout_at(relation, version=none, instant=none, timestamp=none) %}
  {{ return(adapter.relation_at(relation, model, version, instant, timestamp) if execute else relation) }}
{% endmacro %}
