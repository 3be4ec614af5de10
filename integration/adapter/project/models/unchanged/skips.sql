{{ config(materialized='zordered_table', zorder=['id'], skip_unchanged=var('skips', true)) }}
select id, count(*) as found {{ var('comment', '') }}
from {{ ref('ups_seen') }} left join {{ source('unchanged', 'others') }} using (id)
group by id
