{#- Under location_root every schema has a folder of its own, where Spark puts what it writes itself. -#}
{% macro zlayout__create_schema(relation) %}
  {%- set root = adapter.new_schema_root(relation.schema) -%}
  {%- call statement('create_schema') -%}
    create schema if not exists {{ relation }}{% if root %} location {{ adapter.string_literal(root) }}{% endif %}
  {%- endcall -%}
{% endmacro %}


{% macro zlayout__drop_schema(relation) %}
  {% do adapter.drop_tables_in(relation) %}
  {{ return(spark__drop_schema(relation)) }}
{% endmacro %}


{#- A schema that was there before location_root was set keeps its place; its tables name theirs. -#}
{% macro zlayout__location_clause() %}
  {%- set place = none if config.get('location_root') is not none else adapter.place_outside_schema(this) -%}
  {%- if place is none -%}
    {{ return(spark__location_clause()) }}
  {%- endif -%}
  location {{ adapter.string_literal(place) }}
{%- endmacro %}
