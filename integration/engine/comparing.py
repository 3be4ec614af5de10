"""Row sets compared as plain Spark sees them."""

import json
import math
from collections import Counter

from dbt.adapters.zlayout.predicate.literals import backquoted


def canonical(value):
    """A hashable form in which NaN equals NaN and -0.0 differs from nothing that Spark calls equal."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value + 0.0)
    if isinstance(value, (bytearray, bytes)):
        return bytes(value)
    if hasattr(value, "asDict"):
        return tuple((name, canonical(each)) for name, each in zip(value.__fields__, value, strict=True))
    if isinstance(value, dict):
        return tuple(sorted((repr(canonical(k)), repr(canonical(v))) for k, v in value.items()))
    if isinstance(value, list):
        return tuple(canonical(each) for each in value)
    return repr(value)


def bag(frame):
    """The rows of a DataFrame as a multiset, columns in the order of their names."""
    names = sorted(frame.columns)
    return Counter(tuple(canonical(each) for each in row) for row in frame.select(*map(backquoted, names)).collect())


def same_rows(left, right):
    """Whether two DataFrames hold the same rows, counted."""
    return bag(left) == bag(right)


def schema_of(frame):
    """Names and types, order apart."""
    return sorted((each.name, json.dumps(each.dataType.jsonValue(), sort_keys=True)) for each in frame.schema.fields)


def same_checksum(left, right):
    """Whether two DataFrames with the same columns hold the same rows, as far as a sum of 64-bit hashes tells; fast."""
    maps = {each.name for each in left.schema.fields if each.dataType.typeName() == "map"}
    names = [f"to_json({backquoted(name)})" if name in maps else backquoted(name) for name in left.columns]
    sums = "count(*)", f"sum(cast(xxhash64({', '.join(names)}) as decimal(38, 0)))"
    return left.selectExpr(*sums).collect() == right.selectExpr(*sums).collect()
