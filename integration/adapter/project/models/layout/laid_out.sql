{{ config(materialized='zordered_table', zorder=['id', 'code'], target_file_size='16kb') }}
select id, id * 31 % 997 as code, concat('payload ', id * 7919 % 20000) as word from range(20000)
