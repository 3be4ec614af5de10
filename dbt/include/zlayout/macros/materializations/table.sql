{% materialization table, adapter='zlayout', supported_languages=['sql', 'python'] %}
  {%- if not zlayout_writes_format() -%}
    {{ return(materialization_table_spark()) }}
  {%- endif -%}
  {{ return(zlayout_materialize(keeps_rows=false)) }}
{% endmaterialization %}
