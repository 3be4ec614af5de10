{{ config(materialized='table', partition_by='id', tags=['mistakes']) }}
select id, id as n from range(120)
