{{ config(
    enabled=var('wrong'), materialized='zordered_table', zorder=['id'], incremental_strategy='microbatch',
    event_time='at', batch_size='day', begin='2024-03-01'
) }}
select * from {{ ref('events') }}
