{{ config(
    materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day', begin='2024-03-01',
    lookback=0, zorder=['id'], tags=['batches']
) }}
select *, {{ "assert_true(at < timestamp'2024-03-02')" if var('variant') == 'failing' else 'null' }} is null as fine from {{ ref('events') }}
