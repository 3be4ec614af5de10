{{ config(materialized='zordered_table', zorder=['id']) }}
select 'a' as word, {{ {'null': 'if(id = 3, null, id)', 'type': 'cast(id as string)'}.get(var('variant'), 'id') }} as id from range(10)
