{#- Under location_root each schema has its own folder. Spark writes its own tables there too. -#}
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


{#- A schema that existed before location_root was set keeps its folder, so each of its tables gets an explicit location. -#}
{% macro zlayout__location_clause() %}
  {%- set place = none if config.get('location_root') is not none else adapter.place_outside_schema(this) -%}
  {%- if place is none -%}
    {{ return(spark__location_clause()) }}
  {%- endif -%}
  location {{ adapter.string_literal(place) }}
{%- endmacro %}
