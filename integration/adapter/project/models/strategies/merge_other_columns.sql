{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id', merge_exclude_columns=['told', 'part'], partition_by='part', tags=['strategies']) }}
{{ arriving() }}
