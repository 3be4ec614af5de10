{{ config(materialized='zordered_table', zorder=['id'], location_root=var('elsewhere', none)) }}
select id from range(10)
