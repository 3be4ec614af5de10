{{ config(materialized='view') }}
-- What a head of a model, shown without its query, is tried on: every column that one may name.
select *, date'2026-01-01' as first_seen, cast(order_date as timestamp) as event_time, order_date as event_date, order_id as id, order_id as k
from {{ source('shop', 'order_changes') }}
