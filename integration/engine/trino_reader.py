"""Trino's own client in an environment of its own; see `foreign_engine`."""

import sys

import pyarrow as pa
from foreign_engine import answer_questions
from trino.dbapi import connect
from trino_values import pairs, plain, single

CONNECTION = connect(host="127.0.0.1", port=int(sys.argv[1]), user="tests", timezone="UTC")


def answer(query, plainly=False, about=None):
    """The rows of a query, plainly as texts; or what Trino says `about` it, its ``types`` or the ``rows_read``."""
    cursor = CONNECTION.cursor()
    cursor.execute(query)
    rows = cursor.fetchall()
    # What answers with no rows has no columns.
    columns = cursor.description or []
    if about == "rows_read":
        return pa.table({"rows": [cursor.stats["processedRows"]]})
    if about == "types":
        return pa.table({each.name: [each.type_code] for each in columns})
    found = {each.name: [row[at] for row in rows] for at, each in enumerate(columns)}
    if plainly:
        singles = {each.name for each in columns if each.type_code == "real"}
        for name, values in found.items():
            found[name] = [repr(plain(single(each) if name in singles else pairs(each))) for each in values]
    return pa.table(found)


answer_questions(answer)
