{{ config(materialized='zordered_table', zorder=['event_date', 'customer_id'], target_file_size='4kb') }}
select * from {{ source('raw', 'events') }}
