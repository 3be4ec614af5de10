{{ config(enabled=var('past', false), materialized='table') }}
select now.id, now.turn as turn_now, was.turn as turn_then
from {{ ref('versions') }} as now join {{ zlayout_at(ref('versions'), version=0) }} as was on now.id = was.id
