{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id', deleted_when="_zl_change = 'delete'", skip_unchanged=var('skips', false)) }}
select * {{ var('addition', '') }} from {{ zlayout_changes(source('feed', 'feed_orders')) }}
