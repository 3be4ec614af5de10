{{ config(materialized='table', tags=['mistakes']) }}
select a.id, b.id as ID, 1 as n from range(10) a join range(10) b on a.id = b.id
