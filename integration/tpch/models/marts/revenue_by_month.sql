{{ config(zorder=['ship_month', 'order_priority']) }}

select
    trunc(items.l_shipdate, 'month') as ship_month,
    priorities.priority_name as order_priority,
    count(*) as items,
    count(distinct orders.o_orderkey) as orders,
    sum(items.l_extendedprice * (1 - items.l_discount)) as revenue,
    sum(case when items.l_shipdate > date_add(orders.o_orderdate, priorities.days_to_ship) then 1 else 0 end) as late_items
from {{ ref('lineitem') }} as items
join {{ ref('orders') }} as orders on orders.o_orderkey = items.l_orderkey
join {{ ref('order_priorities') }} as priorities on priorities.o_orderpriority = orders.o_orderpriority
group by 1, 2
