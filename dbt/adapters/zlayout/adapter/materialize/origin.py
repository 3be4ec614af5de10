"""What the rows of a model were made from, and whether it has changed since."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from dbt.adapters.zlayout.adapter.materialize.model_settings import ModelSettings
from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.spark.read.query_inputs import (
    FilesInput,
    QueryInputs,
    TableInput,
    TableRead,
    digest_of,
    query_inputs,
    session_facts,
    source_now,
    view_now,
    without_comments,
)
from dbt.adapters.zlayout.timeline.transactions.last_row_change import BASE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NO_ORIGIN = "its rows or columns were last changed by something other than a run of it, or by an older release"
# Used if the model is not compiled. A changed comment or config key also changes the file.
FILE_CHANGED = "its file has changed"
_MOST_NAMES = 5
# The digests that are compared with those of the last commit, in the order of reports.
_CHANGES = {
    "code": "its SQL has changed",
    "settings": "its settings have changed",
    "session": "Spark's version, the time zone or a spark.sql setting has changed",
    "definitions": "a view that it reads, or the columns that it returns, have changed",
}


@dataclass(frozen=True)
class Origin:
    """The inputs from which a run makes the rows of a model.

    Attributes:
        code: Digest of the compiled SQL without comments.
        raw_code: Digest of the model's file.
        settings: Digest of all settings that decide how rows are written.
        session: What the session adds to the meaning of the SQL.
        inputs: What the query reads.
    """

    code: str
    raw_code: str
    settings: str
    session: str
    inputs: QueryInputs

    def to_dict(self) -> dict[str, Any]:
        """Returns what a later run is compared with, as JSON values."""
        return {
            **{name: getattr(self, name) for name in ("code", "raw_code", "settings", "session")},
            "definitions": self.inputs.definitions,
            "views": dict(self.inputs.views),
            "sources": {name: each.to_dict() for name, each in self.inputs.sources.items()},
            "unknown": list(self.inputs.unknown),
        }

    def differences(self, before: Mapping[str, Any]) -> list[str]:
        """Returns why a run would write other rows than the last one, a sentence each. Empty if it would not.

        Args:
            before: `to_dict` of the last run.
        """
        now = self.to_dict()
        found = [why for key, why in _CHANGES.items() if before.get(key) != now[key]]
        if before.get("unknown") != [] and not self.inputs.unknown:
            found.append("its last run could not determine everything that its rows depend on")
        return [*self.inputs.unknown, *found, *_source_differences(self.inputs.sources, before)]


def origin_of(
    sql: str, frame: DataFrame, model: Mapping[str, Any], wanted: ModelSettings, reads: Mapping[str, TableRead]
) -> Origin:
    """Returns what the rows of a model's query are made from.

    Args:
        sql: The compiled query.
        frame: The query, not run yet.
        model: The node.
        wanted: Its settings.
        reads: What temporary views with changes read, by their names.
    """
    why = None
    if model.get("language") == "python":
        why = "it is a Python model"
    elif wanted.incremental.strategy == "microbatch":
        why = "it is written in batches"
    return Origin(
        code=digest_of(without_comments(sql)),
        raw_code=digest_of(model.get("raw_code")),
        settings=_settings_digest(model, wanted),
        session=session_facts(frame.sparkSession),
        inputs=query_inputs(sql, frame, reads, rules=wanted.incremental, lists_files=wanted.skip_unchanged)
        if why is None
        else QueryInputs({}, "", (why,)),
    )


def reasons_to_run(
    spark: SparkSession, before: Mapping[str, Any], model: Mapping[str, Any], wanted: ModelSettings
) -> list[str]:
    """Returns what has changed since a model's last run, as far as that is known without compiling the model."""
    unknown = before.get("unknown")
    found = [str(each) for each in unknown] if isinstance(unknown, list) else []
    facts = {
        "raw_code": digest_of(model.get("raw_code")),
        "settings": _settings_digest(model, wanted),
        "session": session_facts(spark),
    }
    changed = [key for key, now in facts.items() if before.get(key) != now]
    found += [FILE_CHANGED if key == "raw_code" else _CHANGES[key] for key in changed]
    built = BASE in before and before[BASE] is None
    if built and wanted.keeps_rows and "is_incremental" in str(model.get("raw_code")):
        found.append("its SQL differs on the first run after a build (is_incremental)")
    views = before.get("views")
    for name, definition in views.items() if isinstance(views, Mapping) else ():
        if (now := view_now(spark, str(name))) != definition:
            found.append(f"the view {name} {'is gone' if now is None else 'has changed'}")
    for name, source in _sources(before).items():
        # Folders, unlike tables, cannot be looked up by name. An old version of a table never changes.
        if "/" in name:
            continue
        found_now = source_now(spark, name)
        difference = found_now if isinstance(found_now, str) else found_now.difference(source)
        if difference is not None:
            own = name == f"{model.get('schema')}.{model.get('alias')}"
            found.append(f"{'its own table, which it reads,' if own else name} {difference}")
    return found


def sources_text(before: Mapping[str, Any]) -> str:
    """Returns what a run read, such as 'orders v8, customers v3', with schemas where two tables have the same name."""
    sources = _sources(before)
    named_alike = Counter(map(_short, sources))
    inputs = []
    for name, each in sources.items():
        state = f"v{each['version']}" if "version" in each else f"({counted(each.get('count', 0), 'file')})"
        inputs.append(f"{name if named_alike[_short(name)] > 1 else _short(name)} {state}")
    more = [f"{len(inputs) - _MOST_NAMES} more"] if len(inputs) > _MOST_NAMES else []
    return ", ".join([*inputs[:_MOST_NAMES], *more]) or "no tables"


def _short(name: str) -> str:
    """Returns the name of a table without its schema, or the last part of a folder without the version read."""
    if "/" in name:
        return re.sub(r" v\d+$", "", name.rpartition("/")[2])
    return name.rpartition(".")[2]


def _source_differences(sources: Mapping[str, TableInput | FilesInput], before: Mapping[str, Any]) -> Iterator[str]:
    known = _sources(before)
    for name, source in sources.items():
        if name not in known:
            yield f"it reads {name}, which it did not read before"
        elif (difference := source.difference(known[name])) is not None:
            yield f"{name} {difference}"
    yield from (f"it no longer reads {name}" for name in known if name not in sources)


def _sources(before: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Returns the sources of a stored origin. Leaves out malformed ones."""
    found = before.get("sources")
    if not isinstance(found, Mapping):
        return {}
    return {name: each for name, each in found.items() if isinstance(each, Mapping)}


def _settings_digest(model: Mapping[str, Any], wanted: ModelSettings) -> str:
    settings = asdict(replace(wanted, skip_unchanged=False))
    header = model["config"].get("sql_header")
    return digest_of(json.dumps([settings, header], sort_keys=True, default=_plain))


def _plain(value: object) -> object:
    return sorted(map(str, value)) if isinstance(value, (set, frozenset)) else str(value)
