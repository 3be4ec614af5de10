{{ config(materialized='zordered_table', zorder=['l_shipdate'], target_file_size='4kb') }}
select * from {{ ref('stg_lineitem') }}
