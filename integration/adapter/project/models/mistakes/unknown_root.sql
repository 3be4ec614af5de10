{{ config(materialized='table', location_root='foo://data/lake', tags=['mistakes']) }}
select id from range(10)
