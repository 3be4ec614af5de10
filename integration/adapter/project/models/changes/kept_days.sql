{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by='day') }}
select sum(v) as total, day from {{ source('feed', 'feed_orders') }}
where day in (select day from {{ zlayout_changes(source('feed', 'feed_orders')) }}) group by day
