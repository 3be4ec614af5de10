"""TPC-H's 22 queries as Spark runs them, with constants drawn as chapter 2.4 of TPC-H says."""

import datetime as dt

import numpy as np
from advice_tpch import MODES, months

REGIONS = {
    "AFRICA": ["ALGERIA", "ETHIOPIA", "KENYA", "MOROCCO", "MOZAMBIQUE"],
    "AMERICA": ["ARGENTINA", "BRAZIL", "CANADA", "PERU", "UNITED STATES"],
    "ASIA": ["CHINA", "INDIA", "INDONESIA", "JAPAN", "VIETNAM"],
    "EUROPE": ["FRANCE", "GERMANY", "ROMANIA", "RUSSIA", "UNITED KINGDOM"],
    "MIDDLE EAST": ["EGYPT", "IRAN", "IRAQ", "JORDAN", "SAUDI ARABIA"],
}
NATIONS = [nation for each in REGIONS.values() for nation in each]
SEGMENTS = ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"]
TYPES = [
    ["STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"],
    ["ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"],
    ["TIN", "NICKEL", "BRASS", "STEEL", "COPPER"],
]
CONTAINERS = [["SM", "LG", "MED", "JUMBO", "WRAP"], ["CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"]]
COLOURS = ["almond", "azure", "blue", "chocolate", "forest", "green", "ivory", "lemon", "navy", "orchid", "red", "tan"]
REVENUE = "l_extendedprice * (1 - l_discount)"

QUERIES = {
    "q1": """
        select l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), sum({revenue}),
            sum({revenue} * (1 + l_tax)), avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*)
        from lineitem where l_shipdate <= date'1998-12-01' - interval {delta} days
        group by l_returnflag, l_linestatus order by l_returnflag, l_linestatus""",
    "q2": """
        select s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
        from part, supplier, partsupp, nation, region
        where p_partkey = ps_partkey and s_suppkey = ps_suppkey and p_size = {size} and p_type like '%{metal}'
            and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = '{region}'
            and ps_supplycost = (
                select min(ps_supplycost) from partsupp, supplier, nation, region
                where p_partkey = ps_partkey and s_suppkey = ps_suppkey and s_nationkey = n_nationkey
                    and n_regionkey = r_regionkey and r_name = '{region}')
        order by s_acctbal desc, n_name, s_name, p_partkey limit 100""",
    "q3": """
        select l_orderkey, sum({revenue}) revenue, o_orderdate, o_shippriority from customer, orders, lineitem
        where c_mktsegment = '{segment}' and c_custkey = o_custkey and l_orderkey = o_orderkey
            and o_orderdate < date'{march}' and l_shipdate > date'{march}'
        group by l_orderkey, o_orderdate, o_shippriority order by revenue desc, o_orderdate, l_orderkey limit 10""",
    "q4": """
        select o_orderpriority, count(*) from orders
        where o_orderdate >= date'{quarter}' and o_orderdate < date'{quarter}' + interval 3 months
            and exists (select * from lineitem where l_orderkey = o_orderkey and l_commitdate < l_receiptdate)
        group by o_orderpriority order by o_orderpriority""",
    "q5": """
        select n_name, sum({revenue}) revenue from customer, orders, lineitem, supplier, nation, region
        where c_custkey = o_custkey and l_orderkey = o_orderkey and l_suppkey = s_suppkey
            and c_nationkey = s_nationkey and s_nationkey = n_nationkey and n_regionkey = r_regionkey
            and r_name = '{region}' and o_orderdate >= date'{year}'
            and o_orderdate < date'{year}' + interval 1 year
        group by n_name order by revenue desc""",
    "q6": """
        select sum(l_extendedprice * l_discount) from lineitem
        where l_shipdate >= date'{year}' and l_shipdate < date'{year}' + interval 1 year
            and l_discount between 0.{discount:02d} - 0.01 and 0.{discount:02d} + 0.01 and l_quantity < {most}""",
    "q7": """
        select supp_nation, cust_nation, l_year, sum(volume) from (
            select n1.n_name supp_nation, n2.n_name cust_nation, year(l_shipdate) l_year, {revenue} volume
            from supplier, lineitem, orders, customer, nation n1, nation n2
            where s_suppkey = l_suppkey and o_orderkey = l_orderkey and c_custkey = o_custkey
                and s_nationkey = n1.n_nationkey and c_nationkey = n2.n_nationkey
                and ((n1.n_name = '{nation}' and n2.n_name = '{other}')
                    or (n1.n_name = '{other}' and n2.n_name = '{nation}'))
                and l_shipdate between date'1995-01-01' and date'1996-12-31')
        group by supp_nation, cust_nation, l_year order by supp_nation, cust_nation, l_year""",
    "q8": """
        select o_year, sum(case when nation = '{nation}' then volume else 0 end) / sum(volume) from (
            select year(o_orderdate) o_year, {revenue} volume, n2.n_name nation
            from part, supplier, lineitem, orders, customer, nation n1, nation n2, region
            where p_partkey = l_partkey and s_suppkey = l_suppkey and l_orderkey = o_orderkey
                and o_custkey = c_custkey and c_nationkey = n1.n_nationkey and n1.n_regionkey = r_regionkey
                and r_name = '{its_region}' and s_nationkey = n2.n_nationkey
                and o_orderdate between date'1995-01-01' and date'1996-12-31' and p_type = '{type}')
        group by o_year order by o_year""",
    "q9": """
        select nation, o_year, sum(amount) from (
            select n_name nation, year(o_orderdate) o_year, {revenue} - ps_supplycost * l_quantity amount
            from part, supplier, lineitem, partsupp, orders, nation
            where s_suppkey = l_suppkey and ps_suppkey = l_suppkey and ps_partkey = l_partkey
                and p_partkey = l_partkey and o_orderkey = l_orderkey and s_nationkey = n_nationkey
                and p_name like '%{colour}%')
        group by nation, o_year order by nation, o_year desc""",
    "q10": """
        select c_custkey, c_name, sum({revenue}) revenue, c_acctbal, n_name, c_address, c_phone, c_comment
        from customer, orders, lineitem, nation
        where c_custkey = o_custkey and l_orderkey = o_orderkey and o_orderdate >= date'{returned}'
            and o_orderdate < date'{returned}' + interval 3 months and l_returnflag = 'R'
            and c_nationkey = n_nationkey
        group by c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment
        order by revenue desc, c_custkey limit 20""",
    "q11": """
        select ps_partkey, sum(ps_supplycost * ps_availqty) value from partsupp, supplier, nation
        where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = '{nation}'
        group by ps_partkey having sum(ps_supplycost * ps_availqty) > (
            select sum(ps_supplycost * ps_availqty) * {fraction} from partsupp, supplier, nation
            where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = '{nation}')
        order by value desc""",
    "q12": """
        select l_shipmode, count_if(o_orderpriority in ('1-URGENT', '2-HIGH')),
            count_if(o_orderpriority not in ('1-URGENT', '2-HIGH'))
        from orders, lineitem
        where o_orderkey = l_orderkey and l_shipmode in ('{mode}', '{other_mode}') and l_commitdate < l_receiptdate
            and l_shipdate < l_commitdate and l_receiptdate >= date'{year}'
            and l_receiptdate < date'{year}' + interval 1 year
        group by l_shipmode order by l_shipmode""",
    "q13": """
        select c_count, count(*) custdist from (
            select c_custkey, count(o_orderkey) c_count from customer
            left join orders on c_custkey = o_custkey and o_comment not like '%{word}%{other_word}%'
            group by c_custkey)
        group by c_count order by custdist desc, c_count desc""",
    "q14": """
        select 100.00 * sum(case when p_type like 'PROMO%' then {revenue} else 0 end) / sum({revenue})
        from lineitem, part
        where l_partkey = p_partkey and l_shipdate >= date'{month}'
            and l_shipdate < date'{month}' + interval 1 month""",
    "q15": """
        with revenue as (
            select l_suppkey supplier_no, sum({revenue}) total_revenue from lineitem
            where l_shipdate >= date'{quarter}' and l_shipdate < date'{quarter}' + interval 3 months
            group by l_suppkey)
        select s_suppkey, s_name, s_address, s_phone, total_revenue from supplier, revenue
        where s_suppkey = supplier_no and total_revenue = (select max(total_revenue) from revenue)
        order by s_suppkey""",
    "q16": """
        select p_brand, p_type, p_size, count(distinct ps_suppkey) supplier_cnt from partsupp, part
        where p_partkey = ps_partkey and p_brand <> '{brand}' and p_type not like '{medium}%' and p_size in ({sizes})
            and ps_suppkey not in (select s_suppkey from supplier where s_comment like '%Customer%Complaints%')
        group by p_brand, p_type, p_size order by supplier_cnt desc, p_brand, p_type, p_size""",
    "q17": """
        select sum(l_extendedprice) / 7.0 from lineitem, part
        where p_partkey = l_partkey and p_brand = '{brand}' and p_container = '{container}'
            and l_quantity < (select 0.2 * avg(l_quantity) from lineitem where l_partkey = p_partkey)""",
    "q18": """
        select c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity)
        from customer, orders, lineitem
        where o_orderkey in (
                select l_orderkey from lineitem group by l_orderkey having sum(l_quantity) > {many})
            and c_custkey = o_custkey and o_orderkey = l_orderkey
        group by c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
        order by o_totalprice desc, o_orderdate, o_orderkey limit 100""",
    "q19": """
        select sum({revenue}) from lineitem, part
        where p_partkey = l_partkey and l_shipmode in ('AIR', 'AIR REG') and l_shipinstruct = 'DELIVER IN PERSON'
            and ((p_brand = '{brand}' and p_container in ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
                    and l_quantity between {low} and {low} + 10 and p_size between 1 and 5)
                or (p_brand = '{brand_2}' and p_container in ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
                    and l_quantity between {middle} and {middle} + 10 and p_size between 1 and 10)
                or (p_brand = '{brand_3}' and p_container in ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
                    and l_quantity between {high} and {high} + 10 and p_size between 1 and 15))""",
    "q20": """
        select s_name, s_address from supplier, nation
        where s_suppkey in (
                select ps_suppkey from partsupp
                where ps_partkey in (select p_partkey from part where p_name like '{colour}%')
                    and ps_availqty > (
                        select 0.5 * sum(l_quantity) from lineitem
                        where l_partkey = ps_partkey and l_suppkey = ps_suppkey and l_shipdate >= date'{year}'
                            and l_shipdate < date'{year}' + interval 1 year))
            and s_nationkey = n_nationkey and n_name = '{nation}'
        order by s_name""",
    "q21": """
        select s_name, count(*) numwait from supplier, lineitem l1, orders, nation
        where s_suppkey = l1.l_suppkey and o_orderkey = l1.l_orderkey and o_orderstatus = 'F'
            and l1.l_receiptdate > l1.l_commitdate
            and exists (
                select * from lineitem l2 where l2.l_orderkey = l1.l_orderkey and l2.l_suppkey <> l1.l_suppkey)
            and not exists (
                select * from lineitem l3 where l3.l_orderkey = l1.l_orderkey and l3.l_suppkey <> l1.l_suppkey
                    and l3.l_receiptdate > l3.l_commitdate)
            and s_nationkey = n_nationkey and n_name = '{nation}'
        group by s_name order by numwait desc, s_name limit 100""",
    "q22": """
        with people as (
            select substring(c_phone, 1, 2) code, c_acctbal, c_custkey from customer
            where substring(c_phone, 1, 2) in ({codes}))
        select code, count(*), sum(c_acctbal) from people
        where c_acctbal > (select avg(c_acctbal) from people where c_acctbal > 0.00)
            and not exists (select * from orders where o_custkey = people.c_custkey)
        group by code order by code""",
}


def drawn(random, scale):
    """The queries by name, with one draw of constants each."""

    def number(low, high):
        return int(random.integers(low, high + 1))

    def one(values):
        return str(random.choice(values))

    def constants():
        nation, other = random.choice(NATIONS, 2, replace=False)
        mode, other_mode = random.choice(MODES, 2, replace=False)
        return {
            "revenue": REVENUE,
            "delta": number(60, 120),
            "size": number(1, 50),
            "metal": one(TYPES[2]),
            "region": one(list(REGIONS)),
            "segment": one(SEGMENTS),
            "march": dt.date(1995, 3, number(1, 31)),
            "quarter": months(dt.date(1993, 1, 1), number(0, 57)),
            "month": months(dt.date(1993, 1, 1), number(0, 59)),
            "year": dt.date(number(1993, 1997), 1, 1),
            "returned": months(dt.date(1993, 2, 1), number(0, 23)),
            "discount": number(2, 9),
            "most": number(24, 25),
            "nation": nation,
            "other": other,
            "its_region": next(name for name, nations in REGIONS.items() if nation in nations),
            "type": " ".join(map(one, TYPES)),
            "medium": " ".join(map(one, TYPES[:2])),
            "colour": one(COLOURS),
            "fraction": f"{0.0001 / scale:.10f}",
            "mode": mode,
            "other_mode": other_mode,
            "word": one(["special", "pending", "unusual", "express"]),
            "other_word": one(["packages", "requests", "accounts", "deposits"]),
            "sizes": ", ".join(map(str, random.choice(np.arange(1, 51), 8, replace=False))),
            **{name: f"Brand#{number(1, 5)}{number(1, 5)}" for name in ("brand", "brand_2", "brand_3")},
            "container": " ".join(map(one, CONTAINERS)),
            "many": number(312, 315),
            "low": number(1, 10),
            "middle": number(10, 20),
            "high": number(20, 30),
            "codes": ", ".join(f"'{each}'" for each in random.choice(np.arange(10, 35), 7, replace=False)),
        }

    return {name: text.format(**constants()) for name, text in QUERIES.items()}
