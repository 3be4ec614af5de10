{{ config(
    materialized='incremental', incremental_strategy='merge', unique_key='id', partition_by=var('folders', none), zorder=var('keys', ['id']),
) }}
select id, cast(id % 3 as int) as part, id * {{ var('times', 1) }} as told from range({{ var('from', 0) }}, {{ var('to', 60) }})
