{{ config(materialized='incremental', incremental_strategy=var('counted_by', 'merge'), unique_key='v') }}
select v, count(id) as found
from (select distinct v from {{ zlayout_changes(source('feed', 'feed_records')) }})
left join {{ source('feed', 'feed_records') }} using (v)
group by v
