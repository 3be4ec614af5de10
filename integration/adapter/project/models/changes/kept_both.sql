{{ config(materialized='incremental', incremental_strategy='delete+insert', unique_key='id') }}
with touched as (
  select id from {{ zlayout_changes(source('feed', 'feed_orders')) }}
  union
  select id from {{ zlayout_changes(source('feed', 'feed_records')) }}
)
select id, o.v as of_order, r.v as of_record
from touched left join {{ source('feed', 'feed_orders') }} o using (id) left join {{ source('feed', 'feed_records') }} r using (id)
