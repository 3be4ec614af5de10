"""What a user can change, so that a condition skips files."""

from __future__ import annotations

from enum import Enum


class Remedy(Enum):
    """What would help. Its value is the advice as users read it: a command."""

    COMPARE_WITH_CONSTANT = "compare a column with a constant; zlayout_prune_by turns a query's values into constants"
    NO_COLLATION = "store the text without a collation beside it and filter on that"
    NOT_NEEDED = None  # another part of the condition already skips all files that can be skipped
    ORDERED_TYPE = "store the value in a type that has an order and filter on that"
    REWRITE_FILES = "rewrite the files in the column's type: run the model with --full-refresh"
    RUN_SUBQUERY_FIRST = "run the subquery first and write its value as a constant"
    SHORTER_CONDITION = "write a shorter condition, or store the expression's value as a column and filter on that"
    SPLIT_CONDITION = "write the condition as two, or union two queries"
    STATS_COLUMN = "name the column in stats_columns and refresh the index"
    STORE_RESULT = "store the function's result as a column and filter on that"
    STORE_SEARCHED_TEXT = (
        "only the beginning of a text is in the statistics: store what is searched for as a column and filter on that"
    )
    STORE_VALUE = "store the expression's value as a column and filter on that"
    WRITE_CONSTANTS = "write constants; zlayout_prune_by turns a query's values into them"
