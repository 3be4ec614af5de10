{{ config(materialized='table', location_root='data/lake', tags=['mistakes']) }}
select id from range(10)
