{{ config(materialized='zordered_table', incremental_strategy='merge', table_type='merge_on_read', unique_key='id', zorder='id',
    deleted_when="_zl_change = 'delete'", skip_unchanged=var('skips', false)) }}
select * from {{ zlayout_changes(source('feed', 'feed_records')) }}
