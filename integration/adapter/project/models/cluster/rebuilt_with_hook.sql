{{ config(
    materialized='zordered_table', zorder=['a', 'b'], target_file_size=var('size', '128mb'), post_hook="{{ zlayout_cluster(this) }}",
) }}
select id, cast(hash(id) % 1000 as int) as a, cast(hash(id, 1) % 1000 as int) as b from range({{ var('rows', 60000) }})
