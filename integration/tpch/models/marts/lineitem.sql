{{ config(
    zorder=['l_shipdate', 'l_partkey'],
    lookup=['l_orderkey'],
    target_file_size=var('lineitem_file_size'),
) }}

select * from {{ ref('stg_lineitem') }}
