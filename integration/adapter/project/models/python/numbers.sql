{{ config(materialized='zordered_table', zorder=['id'], target_file_size='8kb', tags=['python']) }}
select id, id % 7 as code, concat('payload ', id) as told from range(5000)
