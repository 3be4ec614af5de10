{#- Rebuilt whole in each run; with an incremental_strategy its rows stay and new ones come in. -#}
{% materialization zordered_table, adapter='zlayout', supported_languages=['sql', 'python'] %}
  {{ return(zlayout_materialize(keeps_rows=config.get('incremental_strategy') is not none)) }}
{% endmaterialization %}
