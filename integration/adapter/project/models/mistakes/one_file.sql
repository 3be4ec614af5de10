{{ config(materialized='table', zorder='id', tags=['mistakes']) }}
select id from range(10)
