{{ config(materialized='incremental', tags=['strategies']) }}
{{ arriving() }}
