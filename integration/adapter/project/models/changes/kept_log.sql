{{ config(materialized='incremental', incremental_strategy='append') }}
select id, v, _zl_change as what, {{ var('turn') }} as turn from {{ zlayout_changes(source('feed', 'feed_orders'), unique_key='id') }} c
