"""Settings of a table other than keys and indexes that a workload would choose differently, and what it would read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from dbt.adapters.zlayout.config.column_names import format_column_path
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.quantities import counted, quoted_list, size_text

SMALLEST_FILE = 8 << 20
"""Files below this size are not advised: opening them costs more than reading them."""
MANY_FILES = 1_000
"""Average number of opened files per query above which fewer, larger files are worth the extra reading."""
_TIMES = 4
_FEW_GROUPS, _USUAL_GROUPS = 2, 8
_SPARE_COLUMNS = 16
_MOST_NAMES = 5

SharesOf = Callable[[int], Sequence[float]]


@dataclass(frozen=True)
class SettingAdvice:
    """A setting that the workload would choose differently.

    Attributes:
        setting: The key: 'target_file_size', 'row_group_rows', 'stats_columns' or 'stats_expressions'.
        now: Its value now, as text.
        then: Its advised value; an expression to add begins with '+'. None to leave the key out.
        opened_now: Share of rows that a query of the workload reads now on average, 0 … 1; None if it does not matter.
        opened_then: The same with the advised value; None if it cannot be foreseen.
        why: The advice in a sentence.
    """

    setting: str
    now: str
    then: str | None
    opened_now: float | None
    opened_then: float | None
    why: str


@dataclass(frozen=True)
class PresentSettings:
    """Settings of a table that advice looks at in addition to keys and indexes.

    Attributes:
        row_group_rows: Rows of a row group; None for the usual number of groups.
        stats_columns: The number or the list of columns with statistics, as text.
        tracked: The columns with statistics.
        merge_keys: Columns by which merges look for rows.
        expressions: Expressions that conditions of the workload need statistics of, with the share of the workload that
            has such a condition.
    """

    row_group_rows: int | None = None
    stats_columns: str = ""
    tracked: tuple[ColumnPath, ...] | None = None
    expressions: Mapping[str, float] | None = None
    merge_keys: tuple[ColumnPath, ...] = ()


def file_size(
    target: int, size_bytes: int, most_files: int, shares_of_files: SharesOf, opened: float, min_gain: float
) -> Iterator[SettingAdvice]:
    """Yields a target size of files with which a workload reads less, or opens fewer files.

    Args:
        target: The target size of a file.
        size_bytes: Size of the table.
        most_files: The most files that the sample can stand for. A table that makes more is never advised smaller ones.
        shares_of_files: Returns what the workload opens of a table with so many files, for each seed.
        opened: Share of rows that a query opens with the advised layout and indexes.
        min_gain: What a change must save for every seed; larger files may cost as much.
    """
    files, smaller = max(1, round(size_bytes / target)), target // _TIMES
    opened_files = opened * files
    if smaller >= SMALLEST_FILE and size_bytes > smaller and files * _TIMES <= most_files:
        now, then = shares_of_files(files), shares_of_files(max(1, round(size_bytes / smaller)))
        if all(old > 0 and 1 - new / old >= min_gain for old, new in zip(now, then, strict=True)):
            before, after = mean(now), mean(then)
            why = (
                f"files of {size_text(smaller)} instead of {size_text(target)}: in a fresh layout, a query opens "
                f"{after:.1%} of the rows instead of {before:.1%}"
            )
            yield SettingAdvice("target_file_size", str(target), str(smaller), round(before, 4), round(after, 4), why)
    elif opened_files > MANY_FILES:
        # If the sample stands for fewer files than the table has, it overstates what larger files cost.
        base = min(files, most_files // _TIMES)
        now, then = shares_of_files(base), shares_of_files(max(1, base // _TIMES))
        if all(new <= old * (1 + min_gain) for old, new in zip(now, then, strict=True)):
            after, larger = min(1.0, opened * max(1.0, mean(then) / max(1e-9, mean(now)))), target * _TIMES
            why = (
                f"files of {size_text(larger)} instead of {size_text(target)}: a query opens "
                f"{counted(round(opened_files), 'file')} on average, then {round(after * files / _TIMES):,}, and reads "
                "hardly more"
            )
            yield SettingAdvice("target_file_size", str(target), str(larger), round(opened, 4), round(after, 4), why)


def row_groups(
    row_group_rows: int | None, rows_per_file: float, files: int, shares_of_files: SharesOf, min_gain: float
) -> Iterator[SettingAdvice]:
    """Yields the advice to leave ``row_group_rows`` out if Parquet then skips more inside of files.

    Args:
        row_group_rows: The setting; None if it is left out already.
        rows_per_file: Rows of a file.
        files: Files of the table.
        shares_of_files: As for `file_size`. Row groups are cut as files are.
        min_gain: As for `file_size`.
    """
    if row_group_rows is None or (groups := max(1.0, rows_per_file / row_group_rows)) > _FEW_GROUPS:
        return
    now, then = shares_of_files(round(files * groups)), shares_of_files(files * _USUAL_GROUPS)
    if all(old > 0 and 1 - new / old >= min_gain for old, new in zip(now, then, strict=True)):
        before, after = mean(now), mean(then)
        why = (
            f"leave row_group_rows out: with {counted(round(groups), 'row group')} in a file, a query reads "
            f"{before:.1%} of the rows, with the usual {_USUAL_GROUPS} then {after:.1%}"
        )
        yield SettingAdvice("row_group_rows", str(row_group_rows), None, round(before, 4), round(after, 4), why)


def statistics_columns(
    now: str,
    tracked: Sequence[ColumnPath],
    used: set[ColumnPath],
    missing: Sequence[ColumnPath],
    opened: Sequence[float],
) -> Iterator[SettingAdvice]:
    """Yields the columns that should have statistics, if some lack them, or many have some that no condition uses.

    Args:
        now: ``stats_columns``, as text.
        tracked: The columns with statistics.
        used: The columns that conditions compare, and keys.
        missing: Columns without statistics that pay off.
        opened: Shares of rows that a query opens without and with the statistics of ``missing``.
    """
    spare = [path for path in tracked if path not in used]
    many = len(spare) > _SPARE_COLUMNS
    if not missing and not many:
        return
    kept = [path for path in tracked if not many or path in used]
    wanted = ", ".join(map(format_column_path, (*kept, *missing)))
    reasons = (
        [f"conditions compare {', '.join(map(format_column_path, missing))} without statistics"] if missing else []
    )
    if many:
        names = ", ".join(map(format_column_path, spare[:_MOST_NAMES]))
        reasons.append(f"{len(spare)} of {len(tracked)} columns have statistics that no condition uses ({names} …)")
    why, before, after = f"{', and '.join(reasons)}; set stats_columns: [{wanted}]", None, None
    if missing:
        before, after = (round(each, 4) for each in opened)
        why += f": a query opens {opened[0]:.1%} of the rows without these, then {opened[1]:.1%}"
    else:
        why += " to make the index smaller; add the columns that you merge by"
    yield SettingAdvice("stats_columns", now, f"[{wanted}]", before, after, why)


def missing_expressions(expressions: Mapping[str, float]) -> Iterator[SettingAdvice]:
    """Yields the expressions whose statistics would let conditions skip files, those that are asked most first."""
    for expression, share in sorted(expressions.items(), key=lambda each: (-each[1], each[0])):
        why = (
            f"{share:.0%} of the workload compares {expression}, which has no statistics; with stats_expressions: "
            f"{quoted_list([expression])} it skips the files that hold only other results"
        )
        yield SettingAdvice("stats_expressions", "", f"+ {expression}", None, None, why)
