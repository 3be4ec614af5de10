"""The verdict on a table: one sentence that says how good its layout is, and what to do about each problem."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

from dbt.adapters.zlayout.layout.clustering_measures import ClusteringMeasures
from dbt.adapters.zlayout.quantities import counted, number_text

# How many times the files of a good layout a lookup may read.
_GOOD, _FAIR = 1.5, 3.0
# Below this number of files, a table without keys is as good as one with keys.
_FEW_FILES = 8
# Up to this number of files, no layout is worth a rewrite.
_TWO_FILES = 2
# Clustering cannot separate the rows of one value: with this share of files of one value, a layout is at most fair.
_MOSTLY_CONSTANT, _CONSTANT = 0.5, 0.9
# Records in logs as a share of the rows.
_SOME_LOGS, _MANY_LOGS = 0.1, 0.5
_MOST_KEYS = 2
# What YAML reads as text without quotes: it has a dot or a slash, and begins as no number does.
_PLAIN = re.compile(r"(?=.*[./])[A-Za-z_/][A-Za-z0-9_./-]*")


class Level(IntEnum):
    """How good a table is. A greater number is worse."""

    GOOD = 0
    FAIR = 1
    POOR = 2
    BROKEN = 3

    @property
    def word(self) -> str:
        """The level as a word, capitalized."""
        return self.name.capitalize()


@dataclass(frozen=True)
class Command:
    """The operation that solves a problem, or says more about it.

    Attributes:
        operation: Its name without ``zlayout_``.
        table: The table, as an operation takes it for ``model``.
        arguments: Further arguments.
    """

    operation: str
    table: str
    arguments: Mapping[str, bool] = field(default_factory=dict)

    def text(self, *, with_dbt: bool) -> str:
        """Returns the run-operation of dbt, or else the command of ``zlayout``."""
        return self.dbt_command() if with_dbt else self.zlayout_command()

    def dbt_command(self) -> str:
        """Returns the run-operation, quoted for a shell.

        >>> Command("cluster", "shop.orders", {"execute": True}).dbt_command()
        "dbt run-operation zlayout_cluster --args '{model: shop.orders, execute: true}'"
        """
        model = self.table if _PLAIN.fullmatch(self.table) else json.dumps(self.table, ensure_ascii=False)
        more = "".join(f", {name}: {json.dumps(value)}" for name, value in self.arguments.items())
        return f"dbt run-operation zlayout_{self.operation} --args {shlex.quote(f'{{model: {model}{more}}}')}"

    def zlayout_command(self) -> str:
        """Returns the command of ``zlayout``, quoted for a shell.

        >>> Command("cluster", "/lake/orders", {"execute": True}).zlayout_command()
        'zlayout cluster /lake/orders --execute'
        """
        command = self.operation.removesuffix("_index")
        flags = [f"--{name.replace('_', '-')}" for name, value in self.arguments.items() if value]
        return shlex.join(["zlayout", command, self.table, *flags])


@dataclass(frozen=True)
class Problem:
    """What is wrong with a table.

    Attributes:
        level: How bad it is.
        text: A sentence without a full stop.
        remedy: What solves it; None if no operation does.
    """

    level: Level
    text: str
    remedy: Command | None = None


@dataclass(frozen=True)
class TableVerdict:
    """How good a table is.

    Attributes:
        level: That of the worst problem.
        sentence: The verdict in one sentence, without a full stop.
        problems: The problems, worst first.
        reads: How many times the files of a good layout a lookup on the keys reads; 1.0 is best. None if the table has
            no keys or no rows.
    """

    level: Level
    sentence: str
    problems: tuple[Problem, ...] = ()
    reads: float | None = None

    @property
    def badness(self) -> tuple[float, ...]:
        """Sorts tables: the worst has the greatest."""
        return float(self.level), self.reads or 1.0, float(len(self.problems))

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values."""
        return {
            "level": self.level.name.lower(),
            "sentence": self.sentence,
            "reads_times_the_best": None if self.reads is None else round(self.reads, 2),
            "problems": [
                {
                    "level": each.level.name.lower(),
                    "text": each.text,
                    "command": None if each.remedy is None else each.remedy.dbt_command(),
                }
                for each in self.problems
            ],
        }


@dataclass(frozen=True, kw_only=True)
class TableFigures:
    """What a verdict is about, in addition to the layout of the files.

    Attributes:
        name: The table, as an operation takes it for ``model``.
        managed: Whether this package writes the table.
        merges_on_read: Whether changes are in logs.
        missing_files: Files of the version that are not in the folder.
        foreign_files: Files that other tools put into the folder.
        orphan_files: Files that writers of this package left behind.
        index_gaps: Files about which index and folder disagree.
        log_records: Records that compaction has not merged.
        log_files: The files that hold them.
        pending_clusterings: Plans for clusterings that nothing executes.
        pending_compactions: Plans for compactions that nothing executes.
        lacking: Which optional indexes files lack, one sentence each.
        unfinished: What earlier commits left to the next writer, one sentence each.
    """

    name: str
    managed: bool
    files: int
    rows: int
    zorder: tuple[str, ...] = ()
    merges_on_read: bool = False
    missing_files: int = 0
    foreign_files: int = 0
    orphan_files: int = 0
    index_gaps: int = 0
    log_records: int = 0
    log_files: int = 0
    pending_clusterings: int = 0
    pending_compactions: int = 0
    lacking: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()

    @classmethod
    def of_information(cls, found: Mapping[str, Any]) -> TableFigures:
        """Takes the figures from ``ZTable.information()``."""
        name, pending = str(found["name"]), found["pending"]
        strays = found["foreign_files"] + found["orphan_files"]
        return cls(
            name=name,
            managed=found["level"] == "managed",
            files=found["files"],
            rows=found["rows"],
            zorder=tuple(found["zorder"]),
            merges_on_read="log_records" in found,
            missing_files=found["missing_files"],
            foreign_files=found["foreign_files"],
            orphan_files=found["orphan_files"],
            index_gaps=max(0, found["stale_files"] - strays - found["missing_files"]),
            log_records=found.get("log_records", 0),
            log_files=found.get("log_files", 0),
            pending_clusterings=len(pending["clustering"]),
            pending_compactions=len(pending["compaction"]),
            lacking=tuple(found["lacking"]),
            unfinished=tuple(found["unfinished"]),
        )


def verdict_of(table: TableFigures, layout: ClusteringMeasures | None) -> TableVerdict:
    """Returns the verdict on a table.

    A lookup is ``key = value`` with the value of a random row. In a good layout of k keys, the lookups of all keys
    together leave one of the files: the product of the shares that they read is 1 / files. What is read beyond that is
    spread evenly over the keys. Each partition is judged as a small table.

    Args:
        layout: The layout for its keys; for other columns in a table without keys. None if no column has statistics.
    """
    sentence, problem, reads = _layout(table, layout)
    if problem is not None and table.log_records > _SOME_LOGS * table.rows:
        # A clustering leaves file groups with logs alone: the compaction that another problem names comes first.
        problem = replace(problem, remedy=None)
    problems = sorted([*([problem] if problem else []), *_other_problems(table)], key=lambda each: -each.level)
    level = problems[0].level if problems else Level.GOOD
    if problems and problems[0] is not problem and level > Level.GOOD:
        sentence = problems[0].text
    return TableVerdict(level, f"{level.word}: {sentence}", tuple(problems), reads)


def unreadable(name: str, why: str) -> TableVerdict:
    """Returns the verdict on a table that cannot be opened."""
    text = f"{name} cannot be read: {why}"
    return TableVerdict(Level.BROKEN, f"{Level.BROKEN.word}: {text}", (Problem(Level.BROKEN, text),))


def _layout(table: TableFigures, layout: ClusteringMeasures | None) -> tuple[str, Problem | None, float | None]:
    """Returns a sentence on the layout, its problem, and how many times the files of a good layout are read."""
    if not table.rows:
        return "the table has no rows", None, None
    if (table.files if layout is None else layout.files) == 1:
        return "1 file, which every query reads", None, None
    if not table.zorder or layout is None:
        return _without_keys(table, layout)
    reads = {each.column: each.expected_files["point"] for each in layout.by_column}
    found = {column: max(1.0, number) for column, number in reads.items() if number > 0}
    if not found:
        return f"all values of {', '.join(table.zorder)} are null", None, None
    return _with_keys(table, layout, found)


def _with_keys(
    table: TableFigures, layout: ClusteringMeasures, reads: Mapping[str, float]
) -> tuple[str, Problem | None, float]:
    constant = layout.constant_files / layout.files
    excess = 1.0 if constant >= _CONSTANT else _times_the_best(reads, layout)
    level = Level.GOOD if excess <= _GOOD else Level.FAIR if excess <= _FAIR else Level.POOR
    if constant >= _MOSTLY_CONSTANT:
        level = min(level, Level.FAIR)
    if layout.files <= _TWO_FILES:
        level = Level.GOOD
    shown = list(reads)[:_MOST_KEYS] if level is Level.GOOD else [max(reads, key=lambda each: reads[each])]
    first, *others = (f"on {column} reads {_read(reads[column], layout)}" for column in shown)
    sentence = f"a lookup {first} of {counted(layout.files, 'file')}" + "".join(f", {other}" for other in others)
    if level is Level.GOOD:
        if layout.partitions > 1:
            sentence += f" ({counted(layout.partitions, 'partition')} with files of their own)"
        return sentence, None, excess
    sentence += f"; a good layout reads about {_read(max(1.0, reads[shown[0]] / excess), layout)}"
    if not table.managed:
        text = f"{sentence}. Other tools write this table: have them sort by {', '.join(table.zorder)}"
        return sentence, Problem(level, text), excess
    return sentence, Problem(level, sentence, Command("cluster", table.name)), excess


def _times_the_best(reads: Mapping[str, float], layout: ClusteringMeasures) -> float:
    best = math.log(max(1.0, layout.files / max(1, layout.partitions)))
    reached = sum(math.log(layout.files / number) for number in reads.values())
    if layout.partitions > 1:
        # A lookup reads files of each partition, unless the key decides about partitions too.
        reached = min(reached, best)
    return math.exp(max(0.0, best - reached) / len(reads))


def _without_keys(table: TableFigures, layout: ClusteringMeasures | None) -> tuple[str, Problem | None, float | None]:
    files = counted(table.files if layout is None else layout.files, "file")
    if layout is None or not layout.by_column:
        text = f"no column has statistics, so every query reads all {files}; list columns in stats_columns"
        return text, Problem(Level.FAIR, text), None
    best = min(layout.by_column, key=lambda each: each.expected_files["point"] or math.inf)
    reads = best.expected_files["point"]
    sentence = f"no clustering keys; a lookup on {best.column} reads {_read(reads, layout)} of {files}"
    if layout.files < _FEW_FILES or reads <= _FEW_FILES:
        return sentence, None, None
    more = "list the columns that queries filter by in zorder" if table.managed else "other tools write this table"
    return sentence, Problem(Level.FAIR, f"{sentence}, the fewest of all columns; {more}"), None


def _read(number: float, layout: ClusteringMeasures) -> str:
    return number_text(round(min(number, layout.files), 1))


def _other_problems(table: TableFigures) -> Iterator[Problem]:
    name = table.name
    if table.missing_files:
        are, them = ("is", "it") if table.missing_files == 1 else ("are", "them")
        what = f"{counted(table.missing_files, 'file')} of the table {are} not in its folder"
        what += f", so queries that need {them} fail"
        if table.managed:
            # The command only names the files: what gives their rows up is no command to copy without a thought.
            what += "; restore or roll back, or give up the rows with zlayout_refresh_index and drop_missing: true"
            what += ", which needs file groups without logs" if table.merges_on_read else ""
        yield Problem(Level.BROKEN, what, Command("verify" if table.managed else "refresh_index", name))
    if table.foreign_files:
        what = f"another tool put {counted(table.foreign_files, 'file')} into the folder, whose rows no reader sees"
        if table.merges_on_read:
            yield Problem(Level.FAIR, f"{what}; upsert the rows, then delete the files")
        else:
            what += "; delete files that a failed command left behind, and append the others"
            yield Problem(Level.FAIR, what, Command("refresh_index", name, {"take_orphans": True}))
    if table.index_gaps:
        yield Problem(
            Level.FAIR,
            f"the index does not fit {counted(table.index_gaps, 'file')}, which every query reads",
            Command("refresh_index", name),
        )
    operation = "index" if table.managed else "refresh_index"
    yield from (Problem(Level.FAIR, each.partition(";")[0], Command(operation, name)) for each in table.lacking)
    if table.log_records:
        share = table.log_records / max(1, table.rows)
        level = Level.POOR if share > _MANY_LOGS else Level.FAIR if share > _SOME_LOGS else Level.GOOD
        text = f"{counted(table.log_records, 'record')} in {counted(table.log_files, 'log file')} wait for compaction"
        yield Problem(level, f"{text}, {share:.0%} of the rows", Command("compact", name))
    if table.pending_clusterings:
        plans = counted(table.pending_clusterings, "plan")
        yield Problem(Level.FAIR, f"{plans} for clustering to execute", Command("cluster", name, {"execute": True}))
    if table.pending_compactions:
        plans = counted(table.pending_compactions, "plan")
        yield Problem(Level.FAIR, f"{plans} for compaction to execute", Command("compact", name, {"execute": True}))
    yield from (
        Problem(Level.FAIR, f"an earlier commit left work to the next writer: {each}") for each in table.unfinished
    )
    if table.orphan_files:
        left = counted(table.orphan_files, "file")
        yield Problem(Level.GOOD, f"writers that died left {left} behind, which take up space", Command("clean", name))
