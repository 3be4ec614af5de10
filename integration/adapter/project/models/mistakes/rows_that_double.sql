{{ config(materialized='incremental', incremental_strategy='merge', tags=['mistakes']) }}
select id from range(10)
