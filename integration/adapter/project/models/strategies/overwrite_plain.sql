{{ config(materialized='incremental', incremental_strategy='insert_overwrite', tags=['strategies']) }}
{{ arriving() }}
