{{ config(
    enabled=var('wrong'), materialized='zordered_table', zordr=['id'], curve='peano', target_file_size='much', buckets=3,
    pre_hook="create table {{ this.schema }}.the_hook_ran as select 1 as x"
) }}
select id from range(10)
