{{ config(materialized='incremental', enabled=var('others', '') != '') }}
select * from {{ zlayout_changes(source('feed', var('others'))) if var('others', '').startswith('feed') }}
