import pytest

from dbt.adapters.zlayout.spark.read.query_inputs import FilesInput, TableInput, without_comments


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("select 1 -- one", "select 1"),
        ("select /* a */ 1\n\t", "select 1"),
        ("select 1 -- it's\nfrom t", "select 1\nfrom t"),
        ("select\r\n1", "select 1"),
    ],
)
def test_comments_and_white_space_do_not_count(one, other):
    assert without_comments(one) == without_comments(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("select 'a -- b'", "select 'a -- c'"),
        ("select 'a  b'", "select 'a b'"),
        ("select 'it\\'s -- a'", "select 'it\\'s -- b'"),
        ('select "/* a */"', 'select "/* b */"'),
        ("select r'\\', ' -- a'", "select r'\\', ' -- b'"),
        ("select `a--b` from t", "select `a--c` from t"),
        ("select /*+ broadcast(a) */ 1", "select 1"),
        ("select 1 /* a /* b */ c */", "select 1 /* a /* d */ c */"),
        ("select x or'a -- b'", "select x or'a -- c'"),
        ("selecta", "select a"),
        ("select 1 -- a \\\nwhere false", "select 1 -- a\nwhere false"),
        ("select 1 -- a\rwhere x = 1", "select 1 -- a\rwhere x = 2"),
        ("select /*+ x('*/') */ ' -- a'", "select /*+ x('*/') */ ' -- b'"),
        ("select $$ -- a $$", "select $$ -- b $$"),
    ],
)
def test_everything_else_counts(one, other):
    assert without_comments(one) != without_comments(other)


def test_a_nested_comment_leaves_the_query_as_it_is():
    sql = "select 1 /* don't /* x */ */ , 'a'"
    assert without_comments(sql) == sql


def test_files_differ_by_their_digest():
    assert FilesInput("a", 1).difference(FilesInput("a", 2).to_dict()) is None
    assert FilesInput("a", 1).difference({"files": "b"}) == "has other files"
    assert FilesInput("a", 1).difference({"table": "t", "version": 1}) == "has other files"


READ = TableInput("t", 3, "i", "c", None)


@pytest.mark.parametrize(
    ("before", "told"),
    [
        (READ.to_dict(), None),
        (READ.to_dict() | {"table": "u"}, "is another table now"),
        (READ.to_dict() | {"version": "3"}, "is another table now"),
        ({"files": "a"}, "is another table now"),
        (READ.to_dict() | {"version": 4}, "is at v3, but was at v4"),
        (READ.to_dict() | {"instant": "j"}, "has another v3 than the one that was read"),
        (READ.to_dict() | {"columns": "d"}, "has other columns"),
    ],
)
def test_a_table_differs_by_id_version_and_columns(before, told):
    assert READ.difference(before) == told
