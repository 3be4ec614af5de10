{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by=['part'], tags=['strategies']) }}
{{ arriving() }}
