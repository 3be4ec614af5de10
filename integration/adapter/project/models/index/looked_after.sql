{{ config(
    materialized='incremental', incremental_strategy='append', zorder=['id'], target_file_size='16kb',
    stats_columns=var('stats_columns', ['id']),
    pre_hook="{{ zlayout_refresh_index(source('others', 'feed')) }}",
    post_hook="{{ zlayout_refresh_index(this) }}",
) }}
select id, concat('w', id) as word from {{ source('others', 'feed') }} where id >= {{ var('from', 0) }}
