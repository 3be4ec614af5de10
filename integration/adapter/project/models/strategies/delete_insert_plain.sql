{{ config(materialized='incremental', incremental_strategy='delete+insert', unique_key='part', tags=['strategies']) }}
{{ arriving() }}
