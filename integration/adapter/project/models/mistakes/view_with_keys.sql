{{ config(materialized='view', zorder=['id'], tags=['mistakes']) }}
select id from range(10)
