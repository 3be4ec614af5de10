{{ config(
    materialized='incremental', incremental_strategy='append', zorder=['a', 'b'], target_file_size='16kb',
    clustering='inline', cluster_every=var('every', 1), cluster_max_bytes=var('most', none),
) }}
select id, cast(hash(id) % 1000 as int) as a, cast(hash(id, 1) % 1000 as int) as b from range({{ var('from', 0) }}, {{ var('to', 20000) }})
