"""Random conditions on the columns of ``expression_tables``: a function of a column compared with a value it really has."""

import random

from dbt.adapters.zlayout.spark.schema.table_schema import string_literal

EXPRESSIONS = """
i|l|h|b|f|x|de|dw|d|ts|n|s|bo|st.v|st.t|g|g % 5|g * 2
i + 1|i - 100|100 - i|i * 3|i * -7|i div 3|i div -2|i % 10|pmod(i, 7)|-i|abs(i)|i / 2|round(i, -1)|round(i, -3)
l + 5L|l - 9000000000L|1L - l|l * 2L|l * -1L|l div 1000L|l % 100L|pmod(l, 13L)|-l|abs(l)|l / 4|round(l, -2)
h + cast(1 as smallint)|b * cast(2 as tinyint)|-b|abs(h)|abs(b)|b % cast(5 as tinyint)
cast(b as int) + 1000|cast(i as bigint) * 1000000L|cast(h as bigint)|cast(b as double)|cast(l as double)|cast(l as float)
cast(l as int)|cast(i as smallint)|cast(h as tinyint)|cast(i as decimal(12, 2))|cast(l as decimal(18, 3))|cast(i as decimal(4, 0))
x + 1.5D|x - 0.1D|2.5D - x|x * 3D|x * -0.1D|x / 3D|x / -7D|-x|abs(x)|floor(x)|ceil(x)|round(x, 1)|round(x)|bround(x, 2)
f + cast(0.1 as float)|f * cast(-3 as float)|-f|abs(f)|floor(f)|ceil(f)|round(f, 1)|cast(f as double) * 2D
cast(x as int)|cast(x as bigint)|cast(x as float)|cast(f as smallint)|nanvl(x, 5D)|nanvl(f, cast(1 as float))
de + 1.25|de - 100|1 - de|de * 3|de * -1.1|-de|abs(de)|floor(de)|ceil(de)|round(de, 1)|bround(de, 0)|round(de, -1)|floor(de, 1)|ceil(de, -1)
dw + 1|dw * 2|-dw|abs(dw)|floor(dw)|round(dw, 2)|cast(dw as decimal(20, 1))|cast(de as int)|cast(de as bigint)|cast(de as double)|cast(dw as double)|cast(de as tinyint)|cast(de as decimal(12, 4))|cast(de as decimal(8, 0))
year(d)|quarter(d)|month(d)|day(d)|dayofyear(d)|dayofweek(d)|weekday(d)|last_day(d)|trunc(d, 'YEAR')|trunc(d, 'quarter')|trunc(d, 'mm')|trunc(d, 'week')
date_add(d, 10)|date_sub(d, 400)|d + 1|add_months(d, 1)|add_months(d, -13)|d + interval 1 month|unix_date(d)|datediff(d, date'2020-02-29')|datediff(date'2020-02-29', d)
cast(d as timestamp)|cast(d as timestamp_ntz)|cast(d as string)|unix_timestamp(d)|date_trunc('month', d)|date_format(d, 'yyyy-MM')
year(ts)|quarter(ts)|month(ts)|day(ts)|dayofyear(ts)|dayofweek(ts)|weekday(ts)|hour(ts)|minute(ts)|second(ts)|cast(ts as date)|to_date(ts)|cast(ts as timestamp_ntz)
date_trunc('year', ts)|date_trunc('quarter', ts)|date_trunc('month', ts)|date_trunc('week', ts)|date_trunc('day', ts)|date_trunc('hour', ts)|date_trunc('minute', ts)|date_trunc('second', ts)|date_trunc('millisecond', ts)
ts + interval 1 hour|ts - interval 90 minutes|ts + interval 1 day|ts - interval 2 days 3 hours|ts + interval 1 month|ts - interval 1 year
unix_timestamp(ts)|to_unix_timestamp(ts)|unix_seconds(ts)|unix_millis(ts)|unix_micros(ts)|cast(ts as bigint)|cast(ts as double)|cast(ts as int)
date_format(ts, 'yyyy-MM-dd')|date_format(ts, 'yyyy-MM')|date_format(ts, 'yyyy')|last_day(ts)|trunc(ts, 'month')|add_months(ts, 2)
year(n)|month(n)|day(n)|hour(n)|minute(n)|second(n)|cast(n as date)|cast(n as timestamp)|n + interval 1 day|n - interval 5 hours|n + interval 2 months|date_trunc('hour', n)|date_trunc('week', n)|unix_timestamp(n)
timestamp_seconds(i)|timestamp_millis(i)|timestamp_micros(l)|cast(l as timestamp)|cast(i as timestamp)|date_from_unix_date(i)
substring(s, 1, 2)|left(s, 1)|left(s, 3)|substr(s, 0, 4)|upper(s)|lower(s)|concat('a', s)|concat('ß', upper(s))|left(lower(s), 2)|lower(left(s, 4))
coalesce(i, 5)|coalesce(x, 1.5D)|coalesce(s, 'none')|coalesce(d, date'2021-05-05')|coalesce(i, st.v, 3)|coalesce(i + 1, 0)|nvl(ts, timestamp'2021-01-01 00:00:00')|year(coalesce(d, date'2000-01-01'))
if(i > 5, l, 3L)|if(s is null, 'x', s)|case when i < 0 then 'low' when i < 100 then s else 'high' end|case when bo then i when g = 2 then -i end|nullif(i, 7)|if(x > 1, x, cast(i as double))
greatest(i, 5)|least(i, 5)|greatest(i, null)|least(null, x)|greatest(x, 1.5D)|least(x, 2D)|greatest(s, 'b')|least(ts, timestamp'2021-06-01 00:00:00')|greatest(d, date'2021-01-01')
cast(bo as int)|cast(bo as double)|year(date_add(d, 200))|abs(i - 10)|floor(x / 2D)|-(i + 1)|abs(-x)|month(add_months(ts, 1))|hour(date_trunc('hour', ts))|year(ts + interval 1 day)|floor(abs(de) * 2)
"""

CONDITIONS = """
bo|not bo|bo = false|bo <=> true|bo is distinct from false|coalesce(bo, false)|coalesce(bo, true)|coalesce(i > 5, false)|coalesce(i > 5, bo)
(i > 5) is null|(i > 5) is not null|(x > 1) <=> true|(x > 1) <=> false|(x > 1) = (i > 5)|isnan(x)|not isnan(x)|isnan(x + 1D)|isnan(f * cast(2 as float))|cast(i as boolean)|cast(x as boolean)|not cast(de as boolean)
if(i > 5, s like 'a%', x > 2)|case when i < 0 then true when bo then x > 1 end|not (case when i < 0 then true when bo then x > 1 end)|if(bo, i > 3, null)|not if(bo, i > 3, null)
s like 'a%'|s like 'ab_%'|s like 'ber%n'|s like 'a\\\\%b%'|s like '%n'|s like '_b%'|not s like 'a%'|not s like 'Ber_in'|s ilike 'ber%'|not s ilike 'be%'|upper(s) like 'BER%'|startswith(lower(s), 'be')|s like 'abc'|s like ''|s like '%'|s rlike '^a'|contains(s, 'b')|endswith(s, 'n')|s like any ('a%', 'k%')|s like all ('a%', '%x')
s is null|st is null|st.v is null|year(d) is null|i + 1 is null|coalesce(i, 5) is null|i is not null and l is null|x is null or isnan(x)|ts is null|hour(ts) is not null
g = 7 or i > 50|g between 3 and 20 and (g = 4 or s > 'b')|i < l|d < cast(ts as date)|i = b|true|false|cast(null as boolean)|i = null|not (i <=> null)|i in (1, null)|i not in (1, null)|s in ('a', 'b', null)
length(s) > 2|sqrt(x) > 1|exp(x) > 2|bi = cast('a' as binary)|bi > cast('b' as binary)|bi like 'a%'
"""


def _listed(text):
    return [each.strip() for line in text.strip().splitlines() for each in line.split("|")]


def expressions():
    """SQL of every expression that is compared with constants."""
    return _listed(EXPRESSIONS)


def conditions():
    """SQL of conditions that stand for themselves."""
    return _listed(CONDITIONS)


def literal(text, kind):
    """A constant as SQL, from the text that Spark casts the value to."""
    if text is None:
        return f"cast(null as {kind})"
    quoted = string_literal(text)
    return quoted if kind == "string" else f"cast({quoted} as {kind})"


def comparison(rng, expression, kind, texts):
    """One condition on an expression, with constants among its values (or a null)."""

    def constant():
        return literal(rng.choice(texts) if texts and rng.random() < 0.97 else None, kind)

    form = rng.randrange(12)
    if form < 7:
        return f"{expression} {rng.choice(['=', '<', '<=', '>', '>=', '<>', '<=>'])} {constant()}"
    if form < 9:
        members = ", ".join(constant() for _ in range(rng.choice([1, 2, 4, 14])))
        return f"{expression} {rng.choice(['in', 'not in'])} ({members})"
    if form == 9:
        return f"{expression} between {constant()} and {constant()}"
    if form == 10:
        return f"{constant()} {rng.choice(['<', '>=', '='])} {expression}"
    if kind == "string":
        return f"startswith({expression}, {constant()})"
    return f"{expression} is {rng.choice(['null', 'not null'])}"


def combined(rng, parts):
    """Some conditions joined by AND, OR and NOT."""
    if len(parts) == 1:
        return f"not ({parts[0]})" if rng.random() < 0.2 else parts[0]
    cut = rng.randrange(1, len(parts))
    left, right = combined(rng, parts[:cut]), combined(rng, parts[cut:])
    joined = f"({left}) {rng.choice(['and', 'or'])} ({right})"
    return f"not ({joined})" if rng.random() < 0.2 else joined


def random_predicates(rng, values, count):
    """Conditions as SQL.

    Args:
        values: For each expression its type and texts of values that it has.
        count: How many.
    """
    fixed = conditions()

    def one():
        if rng.random() < 0.15:
            return rng.choice(fixed)
        expression = rng.choice(list(values))
        return comparison(rng, expression, *values[expression])

    return [combined(rng, [one() for _ in range(rng.choice([1, 1, 1, 2, 3]))]) for _ in range(count)]


def seeded(seed):
    """A source of random choices."""
    return random.Random(seed)
