{{ config(materialized=var('as', 'incremental'), event_time='day', begin='2024-01-01', batch_size='day', incremental_strategy=var('how', none)) }}
select * from {{ zlayout_changes(source('feed', 'feed_orders')) }}
