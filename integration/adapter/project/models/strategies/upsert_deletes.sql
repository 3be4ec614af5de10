{{ config(
    materialized='incremental', unique_key='id', deleted_when='amount > 300 and part = 1', partition_by='part', table_type='merge_on_read',
    compaction='off', tags=['strategies']
) }}
{{ arriving() }}
