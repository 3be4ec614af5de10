{{ config(materialized='zordered_table', zorder=['id'], skip_unchanged=var('skips', true),
    post_hook="{% if var('hook_fails', false) %}select assert_true(false){% endif %}") }}
select id, count(*) as found {{ var('comment', '') }}
from {{ ref('ups_seen') }} left join {{ source('unchanged', 'others') }} using (id)
group by id
