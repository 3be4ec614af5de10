"""Advice: maps the reason why a condition cannot skip files to a change that would let it."""

from __future__ import annotations

import re

_ADVICE = (
    (r"`(Lower|Upper)` ", "store a column in one case and filter on that"),
    (r"has a collation", "store the text without a collation beside it and filter on that"),
    (
        r"neither side is a constant|two columns have no rule|more than a column and a constant",
        "compare a column with a constant; zlayout_prune_by turns a query's values into constants",
    ),
    (r"is not a constant|more than constants", "write constants; zlayout_prune_by turns a query's values into them"),
    (
        r"`(EndsWith|Contains|Like|RLike|MultiLikeBase|LikeAll|LikeAny)` |begins with a wildcard|beginning of a text",
        "only the beginning of a text is in the statistics: store what is searched for as a column and filter on that",
    ),
    (
        r"`(PythonUDF|ScalaUDF|HiveSimpleUDF|HiveGenericUDF)` ",
        "store the function's result as a column and filter on that",
    ),
    (r"`ScalarSubquery` ", "run the subquery first and write its value as a constant"),
    (r"has no statistics|constant has type", "store the value in a type that has an order and filter on that"),
    (r"no statistics for column", "name the column in stats_columns and refresh the index"),
    (
        r"statistics of column .* are of type",
        "rewrite the files in the column's type: run the model with --full-refresh",
    ),
    (
        r"`\w+` |has no rule|keeps? (an |the )?order|goes two ways|branches|cut to this unit|read as times",
        "store the expression's value as a column and filter on that",
    ),
    (r"mixes partition columns with others", "write the condition as two, or union two queries"),
    (
        r"has more than|too large to be evaluated|nested more than|it takes more than|reading it takes",
        "write a shorter condition, or store the expression's value as a column and filter on that",
    ),
)


def advice_for(why_not: str | None) -> str | None:
    """Returns what to change; None if nothing would help.

    Args:
        why_not: The reason from the condition's report.
    """
    if why_not is None:
        return None
    return next((text for pattern, text in _ADVICE if re.search(pattern, why_not)), None)
