{#- A view of dbt-spark. Settings about files have no effect on a view, so the adapter warns about them. -#}
{% materialization view, adapter='zlayout' %}
  {% do adapter.check_settings_without_files(model) %}
  {{ return(materialization_view_spark()) }}
{% endmaterialization %}
