{{ config(materialized='zordered_table', zorder=['id']) }}
select id, id % 3 as kind from range(100)
