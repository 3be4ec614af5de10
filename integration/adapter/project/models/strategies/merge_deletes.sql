{{ config(
    materialized='incremental', incremental_strategy='merge', unique_key='id', deleted_when="op = 'D'", zorder=['id'], target_file_size='1kb',
    tags=['strategies']
) }}
select *, case when amount > 300 and part = 1 then 'D' end as op from ({{ arriving() }})
