{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id, part', tags=['strategies']) }}
{{ arriving() }}
