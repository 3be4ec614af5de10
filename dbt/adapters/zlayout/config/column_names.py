"""Column names in settings: ``a``, ``a.b`` for a struct field, backquotes around a name with dots."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from dbt.adapters.zlayout.predicate.expr import EXPRESSION, ColumnPath
from dbt.adapters.zlayout.predicate.literals import backquoted

_PLAIN_NAME = re.compile(r"[^\W\d]\w*")
_PART = re.compile(r"`((?:[^`]|``)+)`|([^`.]+)")
# Outside backquotes, only expressions contain one of these.
_EXPRESSION = re.compile(r"[()|+*/'\"\s]")
_SURELY_EXPRESSION = re.compile(r"[()|+*/'\"]")
_BACKQUOTED = re.compile(r"`(?:[^`]|``)*`")
_TOKEN = re.compile(r"""`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|.""", re.DOTALL)

ColumnSet = tuple[ColumnPath, ...]
"""Columns that belong together."""


def parse_column_path(text: str) -> ColumnPath:
    """Splits a column as written in a setting into its path.

    Args:
        text: ``a``, ``a.b``, ``a.`b.c` ``; a backquote inside backquotes is doubled, as in Spark.

    Returns:
        The path, outermost name first.

    Raises:
        ValueError: The text is empty, has an empty part or has unpaired backquotes.

    >>> parse_column_path("address.`zip.code`")
    ('address', 'zip.code')
    """
    stripped = text.strip()
    parts: list[str] = []
    position = 0
    while True:
        match = _PART.match(stripped, position)
        if match is None:
            raise ValueError(f"'{text}' does not name a column (write a, a.b, or `a.b` for a name with a dot)")
        parts.append(match[1].replace("``", "`") if match[1] is not None else match[2])
        position = match.end()
        if position == len(stripped):
            return tuple(parts)
        if stripped[position] != ".":
            raise ValueError(f"'{text}' does not name a column (backquotes must enclose a whole name)")
        position += 1


def format_column_path(path: ColumnPath) -> str:
    """Writes a path so that `parse_column_path` reads it back; plain names get no backquotes, expressions neither.

    >>> format_column_path(("address", "zip.code"))
    'address.`zip.code`'
    """
    if path[0] == EXPRESSION:
        return path[1]
    return ".".join(name if _PLAIN_NAME.fullmatch(name) else backquoted(name) for name in path)


def folded_path(path: ColumnPath) -> ColumnPath:
    """Returns a path in lower case, because Spark compares column names without regard to case.

    >>> folded_path(("Address", "Zip"))
    ('address', 'zip')
    """
    return path if path[0] == EXPRESSION else tuple(name.lower() for name in path)


def split_column_list(text: str) -> list[str]:
    """Splits a list of columns at each comma outside quotation marks and parentheses.

    >>> split_column_list("a, `b,c`.d, left(concat(e, ')'), 3)")
    ['a', '`b,c`.d', "left(concat(e, ')'), 3)"]
    """
    return [part for part in _split(text, ",") if part]


def _split(text: str, separator: str) -> list[str]:
    """Splits a text at each separator outside quotation marks and parentheses.

    >>> _split("a + `b+c` +", "+")
    ['a', '`b+c`', '']
    """
    parts, depth = [""], 0
    for token in _TOKEN.findall(text):
        depth += (token == "(") - (token == ")")
        if token == separator and depth <= 0:
            parts.append("")
        else:
            parts[-1] += token
    return [part.strip() for part in parts]


def parse_column_list(
    key: str, value: object, problems: list[str], *, repeats: bool = False, expressions: bool = False
) -> tuple[ColumnPath, ...]:
    """Reads a setting that lists columns.

    Args:
        key: The setting, for messages.
        value: None, a comma-separated string, or a list of strings. In a list a comma is part of the name.
        problems: Receives one sentence for each wrong entry.
        repeats: Whether a column may be listed more than once, as in a key that several macros extend.
        expressions: Whether an entry may be an SQL expression. It has a parenthesis, an operator or a quotation mark
            outside backquotes, and its path is `EXPRESSION` and the text.

    Returns:
        The paths in the given order, without wrong entries and duplicates.

    >>> problems: list[str] = []
    >>> parse_column_list("zorder", "event_date, address.city, event_date", problems), problems
    ((('event_date',), ('address', 'city')), ["zorder: column 'event_date' is listed twice"])
    """
    if value is None:
        return ()
    spelled: Sequence[object]
    if isinstance(value, str):
        spelled = split_column_list(value)
    elif isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        spelled = value
    else:
        problems.append(f"{key}: {value!r} is not a list of columns (write ['a', 'b.c'] or 'a, b.c')")
        return ()
    paths: list[ColumnPath] = []
    for each in spelled:
        if not isinstance(each, str):
            problems.append(f"{key}: {each!r} is not a column name (names are strings)")
            continue
        try:
            is_expression = expressions and _SURELY_EXPRESSION.search(_BACKQUOTED.sub("x", each))
            path = (EXPRESSION, each.strip()) if is_expression else parse_column_path(each)
        except ValueError as error:
            problems.append(f"{key}: {error}")
            continue
        if path not in paths:
            paths.append(path)
        elif not repeats:
            problems.append(f"{key}: column '{format_column_path(path)}' is listed twice")
    return tuple(paths)


def parse_column_sets(key: str, value: object, problems: list[str]) -> tuple[ColumnSet, ...]:
    """Reads a setting that lists columns, some of which belong together, and expressions, as `parse_column_list` does.

    Args:
        key: The setting, for messages.
        value: None, a list, or a comma-separated string. In a list, a list of names stands for columns together; in a
            string, ``+`` outside parentheses joins them.
        problems: Receives one sentence for each wrong entry.

    Returns:
        The columns of each entry, in the given order, without wrong entries and duplicates.

    >>> problems: list[str] = []
    >>> parse_column_sets("lookup", ["id", ["shop", "number"]], problems)
    ((('id',),), (('shop',), ('number',)))
    >>> parse_column_sets("lookup", "id, shop+number", problems), problems
    (((('id',),), (('shop',), ('number',))), [])
    """
    if value is None:
        return ()
    if isinstance(value, str):
        value = [_split(each, "+") for each in split_column_list(value)]
    if not isinstance(value, Sequence) or isinstance(value, bytes | bytearray):
        problems.append(f"{key}: {value!r} is not a list of columns (write ['a', ['b', 'c']] or 'a, b+c')")
        return ()
    found: list[ColumnSet] = []
    for each in value:
        together = parse_column_list(key, [each] if isinstance(each, str) else each, problems, expressions=True)
        if not together:
            if not each and not isinstance(each, str):
                problems.append(f"{key}: {each!r} names no column; name at least one")
        elif set(together) in map(set, found):
            problems.append(f"{key}: {described_set(together)} is listed twice")
        else:
            found.append(together)
    return tuple(found)


def format_column_set(columns: ColumnSet) -> str:
    """Writes columns that belong together so that `parse_column_sets` reads them back.

    >>> format_column_set((("shop",), ("address", "zip")))
    'shop+address.zip'
    """
    return "+".join(map(format_column_path, columns))


def described_set(columns: ColumnSet) -> str:
    """Returns columns that belong together as a message names them: ``column 'a'``, ``columns 'a+b'``."""
    return f"column{'s' if len(columns) > 1 else ''} '{format_column_set(columns)}'"


def as_columns(paths: ColumnSet, known: Iterable[ColumnPath]) -> ColumnSet:
    """Returns columns and expressions with a column in place of each expression that is called like one.

    >>> as_columns(((EXPRESSION, "A+b"), (EXPRESSION, "a*b")), [("a+b",)])[0]
    ('A+b',)
    """
    names = set(map(folded_path, known))
    return tuple(path[1:] if path[0] == EXPRESSION and folded_path(path[1:]) in names else path for path in paths)


def spelled_as(columns: Iterable[str], names: Iterable[str]) -> list[str | None]:
    """Returns names, with or without backquotes, as the columns are spelled; None for one that is no column.

    Of columns that differ in case only, each is found by its own spelling.

    >>> spelled_as(["id", "a", "A"], ["ID", "`A`", "a", "b"])
    ['id', 'A', 'a', None]
    """
    columns = list(columns)
    known = {name.lower(): name for name in columns} | {name: name for name in columns}
    bare = [name.strip("`") for name in names]
    return [known.get(name, known.get(name.lower())) for name in bare]


def folded_set(columns: ColumnSet) -> frozenset[ColumnPath]:
    """Returns what is equal for columns that belong together, in any order and any case."""
    return frozenset(map(folded_path, columns))


def parse_top_level(
    key: str, value: object, problems: list[str], why: str = "name a top-level column", *, repeats: bool = False
) -> tuple[str, ...]:
    """Reads a list of columns that are not fields of a struct, as `parse_column_list` does.

    Args:
        key: The setting, for messages.
        problems: Receives one sentence for each wrong entry.
        why: The message for a field of a struct; ``{}`` stands for its path without backquotes.
        repeats: Whether a column may be listed more than once.
    """
    names = []
    for path in parse_column_list(key, value, problems, repeats=repeats):
        if len(path) == 1:
            names.append(path[0])
        else:
            spelled = format_column_path(path)
            problems.append(f"{key}: '{spelled}' is a field of a struct; {why.format('.'.join(path))}")
    return tuple(names)


def parse_one_column(key: str, value: object, problems: list[str]) -> str | None:
    """Reads the name of one top-level column."""
    columns = parse_top_level(key, value, problems)
    if len(columns) > 1:
        problems.append(f"{key}: {value!r} names {len(columns)} columns; name exactly one")
    return columns[0] if columns else None


def parse_no_expressions(key: str, value: object, problems: list[str]) -> tuple[str, ...]:
    """Reads a list of top-level columns where dbt also allows expressions, which are refused."""
    listed = [value] if isinstance(value, str) else value if isinstance(value, Sequence) else ()
    words = {each: _BACKQUOTED.sub("x", each).split(",") for each in listed if isinstance(each, str)}
    if expressions := [
        each for each, parts in words.items() if any(_EXPRESSION.search(part.strip()) for part in parts)
    ]:
        problems.append(
            f"{key}: {expressions[0]!r} is an expression; list column names only (in backquotes if a name has special "
            "characters), and compute the expression as a column of the model"
        )
        return ()
    return parse_top_level(key, value, problems, repeats=True)


def parse_expressions(key: str, value: object, problems: list[str]) -> tuple[str, ...]:
    """Reads a setting that lists SQL expressions; a string is one of them. Spark checks them later.

    >>> problems: list[str] = []
    >>> parse_expressions("stats_expressions", ["lower(email)", " length(name) ", "lower(email)"], problems)
    ('lower(email)', 'length(name)')
    """
    given: Sequence[object]
    if isinstance(value, str):
        given = [value]
    elif isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        given = value
    else:
        problems.append(f"{key}: {value!r} is not a list of expressions (write ['lower(email)', 'length(name)'])")
        return ()
    found = [each.strip() if isinstance(each, str) else "" for each in given]
    problems += [
        f"{key}: {each!r} is not an expression (expressions are text, such as 'lower(email)')"
        for each, text in zip(given, found, strict=True)
        if not text
    ]
    return tuple(dict.fromkeys(text for text in found if text))
