{{ config(materialized='view') }}
select id as l_orderkey, id * 37 % 5000 as l_partkey, id % 10 as l_suppkey, date_add(date'1992-01-01', cast(id * 2405 / 5000 as int)) as l_shipdate
from range(5000)
