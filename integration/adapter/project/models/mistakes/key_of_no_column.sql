{{ config(materialized='incremental', incremental_strategy='merge', unique_key='order_id', tags=['mistakes']) }}
select id as orderid from range(10)
