{{ config(materialized='incremental', incremental_strategy='merge', tags=['strategies']) }}
{{ arriving() }}
