{{ config(materialized='incremental', incremental_strategy='append', partition_by='ts') }}
select id, timestamp_seconds(1700000000 + 3600 * id) ts from range(2)
