{{ config(materialized='zordered_table', incremental_strategy='append', zorder='id', tags=['strategies']) }}
select * from ({{ arriving() }}) {% if is_incremental() %}where id > (select max(id) from {{ this }}){% endif %}
