{{ config(materialized='table', location_root=var('a_file', '/nowhere'), tags=['mistakes']) }}
select id from range(10)
