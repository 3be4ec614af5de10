{{ config(enabled=var('wrong'), materialized='zordered_table', zorder=['idd']) }}
select id from range(10)
