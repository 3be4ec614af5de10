{{ config(materialized='table', tags=['batches']) }}
select id, timestamp'2024-03-01 00:00:00' + make_interval(0, 0, 0, 0, cast(id as int)) as at, '{{ var('variant') }}' as made_by
from range({{ var('hours', 72) }})
