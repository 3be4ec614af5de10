{{ config(
    materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day', begin='2024-03-01', lookback=0,
    table_type='merge_on_read', unique_key='id',
) }}
select * from {{ ref('events') }}
