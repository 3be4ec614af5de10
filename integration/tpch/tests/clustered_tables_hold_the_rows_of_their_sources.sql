-- Rows and sums of the clustered tables against the plain Parquet that they were made from.
with compared as (
    select
        'lineitem' as name,
        (select struct(count(*), sum(l_extendedprice), sum(l_partkey)) from {{ source('tpch_raw', 'lineitem') }}) as expected,
        (select struct(count(*), sum(l_extendedprice), sum(l_partkey)) from {{ ref('lineitem') }}) as found
    union all
    select
        'orders' as name,
        (select struct(count(*), sum(o_totalprice), sum(o_custkey)) from {{ source('tpch_raw', 'orders') }}) as expected,
        (select struct(count(*), sum(o_totalprice), sum(o_custkey)) from {{ ref('orders') }}) as found
)

select * from compared where not expected <=> found
