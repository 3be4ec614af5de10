{#- Each run rebuilds the whole table. With an incremental_strategy the table keeps its rows and each run adds new ones. -#}
{% materialization zordered_table, adapter='zlayout', supported_languages=['sql', 'python'] %}
  {{ return(zlayout_materialize(keeps_rows=config.get('incremental_strategy') is not none)) }}
{% endmaterialization %}
