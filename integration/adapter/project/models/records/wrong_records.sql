{{ config(
    enabled=var('wrong'), materialized='incremental', incremental_strategy='append', table_type='merge_on_read', unique_key='id',
) }}
select 1 as id
