{{ config(materialized='incremental', table_type='merge_on_read', unique_key='id, `day`', deleted_when="_zl_change = 'delete'") }}
select * from {{ zlayout_changes(source('feed', 'feed_orders')) }}
