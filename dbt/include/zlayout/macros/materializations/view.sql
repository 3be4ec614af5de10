{#- A view of dbt-spark; what it is told of files is pointed out, as it has none. -#}
{% materialization view, adapter='zlayout' %}
  {% do adapter.check_settings_without_files(model) %}
  {{ return(materialization_view_spark()) }}
{% endmaterialization %}
