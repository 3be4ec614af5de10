{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id', skip_not_matched_step=true, partition_by='part', tags=['strategies']) }}
{{ arriving() }}
