{{ config(materialized='incremental', incremental_strategy='append', partition_by='part', zorder='id', tags=['strategies']) }}
{{ arriving() }}
