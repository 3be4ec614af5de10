{{ config(materialized='incremental', incremental_strategy='merge', table_type='merge_on_read', unique_key='order_id', ordering='updated_at') }}
select * from {{ source('shop', 'order_changes') }}
