{{ config(
    zorder=['o_orderdate', 'o_custkey'],
    partition_by=['o_orderpriority'],
    target_file_size=var('orders_file_size'),
) }}

select * from {{ ref('stg_orders') }}
