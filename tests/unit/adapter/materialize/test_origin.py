import pytest

from dbt.adapters.zlayout.adapter.materialize.origin import Origin, sources_text
from dbt.adapters.zlayout.spark.read.query_inputs import FilesInput, QueryInputs


def origin(code="c", session="s", sources=(("t", "digest"),), definitions="d", unknown=()):
    files = {name: FilesInput(digest, 1) for name, digest in sources}
    return Origin(code, "r", "settings", session, QueryInputs(files, definitions, unknown))


def test_the_same_origin_has_no_difference():
    assert origin().differences(origin().to_dict()) == []


@pytest.mark.parametrize(
    ("before", "told"),
    [
        (origin(code="x"), "its SQL has changed"),
        (origin(session="x"), "Spark's version"),
        (origin(definitions="x"), "a view that it reads"),
        (origin(sources=()), "it reads t, which it did not read before"),
        (origin(sources=(("t", "digest"), ("u", "digest"))), "it no longer reads u"),
        (origin(sources=(("t", "x"),)), "t has other files"),
        # A function of others that has the name of one of Spark's, and is gone by now.
        (origin(unknown=("it calls f, which is not a function of Spark",)), "its last run could not determine"),
    ],
)
def test_each_part_counts(before, told):
    (why,) = origin().differences(before.to_dict())
    assert told in why


@pytest.mark.parametrize("damaged", [{}, {"sources": 3, "unknown": "x"}, {"code": ["c"], "sources": {"t": None}}])
def test_a_damaged_record_differs(damaged):
    assert origin().differences(damaged)


def test_what_a_run_read_is_told_in_short():
    sources = {
        "main.orders": {"version": 8},
        "file:///lake/main.db/orders v3": {"version": 3},
        "file:/lake/v1.2/clicks": {"files": "a", "count": 2},
    }
    assert sources_text({"sources": {"main.orders": {"version": 8}}}) == "orders v8"
    told = "main.orders v8, file:///lake/main.db/orders v3 v3, clicks (2 files)"
    assert sources_text({"sources": sources}) == told
