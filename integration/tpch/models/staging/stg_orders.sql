select
    o_orderkey,
    o_custkey,
    o_orderdate,
    o_orderpriority,
    o_orderstatus,
    o_totalprice,
    o_clerk,
    o_shippriority,
    o_comment
from {{ source('tpch_raw', 'orders') }}
