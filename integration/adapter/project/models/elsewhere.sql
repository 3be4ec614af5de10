{{ config(materialized='zordered_table', zorder=['id'], location_root=var('elsewhere', none), alias=var('alias', none)) }}
select id from range(10)
