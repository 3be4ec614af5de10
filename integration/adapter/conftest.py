"""dbt on a real Spark: one session and one project for the suite, each command through dbt's own runner."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
import yaml

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
_PROJECT = Path(__file__).parent / "project"


def pytest_configure(config: pytest.Config) -> None:
    from dbt_common.tests import enable_test_caching

    # dbt and its parsers warn of themselves; the suite is about what they do.
    config.addinivalue_line("filterwarnings", "default")
    # What dbt's own tests do: a macro of the same text is not parsed again by the next command.
    enable_test_caching()


@dataclass(frozen=True)
class Outcome:
    """The outcome of one dbt command."""

    success: bool
    printed: str
    log: str
    exception: BaseException | None
    results: dict[str, Any]

    def message(self, model: str) -> str:
        return str(self.results[model].message)

    def response(self, model: str) -> dict[str, Any]:
        return dict(self.results[model].adapter_response)


class DbtProject:
    """A copy of a project with its own profile."""

    def __init__(
        self,
        folder: Path,
        warehouse: Path,
        *,
        source: Path = _PROJECT,
        profile: str = "adapter_suite",
        **target_keys: Any,
    ) -> None:
        shutil.copytree(source, folder)
        self.folder = folder
        self.schema = target_keys["schema"]
        target = {
            "type": "zlayout",
            "threads": 2,
            "server_side_parameters": {
                "spark.master": "local[2]",
                "spark.driver.memory": "2g",
                "spark.ui.enabled": False,
                "spark.sql.shuffle.partitions": 2,
                "spark.sql.warehouse.dir": str(warehouse),
                "spark.sql.session.timeZone": "UTC",
                "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:memory:a{os.getpid()};create=true",
            },
            **target_keys,
        }
        (folder / "profiles.yml").write_text(yaml.safe_dump({profile: {"target": "t", "outputs": {"t": target}}}))

    def __call__(self, *arguments: str, dbt_vars: Mapping[str, Any] | None = None, **variables: Any) -> Outcome:
        """Runs a command in this process. The macro ``var`` of the project finds ``variables`` in the environment;
        ``dbt_vars`` are for what reads dbt's own variables, such as properties in YAML."""
        from dbt.cli.main import dbtRunner

        printed: list[str] = []
        log: list[str] = []

        def note(event: Any) -> None:
            if event.info.name == "PrintEvent":
                printed.append(event.info.msg)
            elif event.info.level != "debug":
                log.append(event.info.msg)

        place = ["--project-dir", str(self.folder), "--profiles-dir", str(self.folder)]
        if dbt_vars:
            # dbt parses all files anew where --vars differ from those of the last command in a target folder.
            spoken = json.dumps(dbt_vars)
            folder = self.folder / "target" / hashlib.sha256(spoken.encode()).hexdigest()[:16]
            place += ["--vars", spoken, "--target-path", str(folder)]
        if arguments[0] in ("compile", "run-operation"):
            # Their artifacts hold nothing of the adapter, and dbt would write the whole manifest for each.
            place += ["--no-write-json"]
        if variables and not (self.folder / "macros" / "var.sql").exists():
            raise ValueError(f"{self.folder} has no macro var, so it needs dbt_vars")
        given = {f"ADAPTER_SUITE_{name}": json.dumps(value) for name, value in variables.items()}
        with patch.dict(os.environ, given):
            done = dbtRunner(callbacks=[note]).invoke([*arguments, *place])
        found = getattr(done.result, "results", None) or []
        return Outcome(
            success=done.success,
            printed="\n".join(printed),
            log="\n".join(log),
            exception=done.exception,
            results={result.node.name: result for result in found if getattr(result, "node", None) is not None},
        )

    def artifact(self, name: str) -> dict[str, Any]:
        """What the last command without variables wrote."""
        found: dict[str, Any] = json.loads((self.folder / "target" / name).read_text())
        return found

    def rows_of(self, sql: str, **variables: Any) -> list[tuple[Any, ...]]:
        """Runs a query with Jinja in plain Spark."""
        from pyspark.sql import SparkSession

        done = self("compile", "--inline", sql, "--quiet", **variables)
        assert done.success, done.log
        (compiled,) = done.results.values()
        found = SparkSession.builder.getOrCreate().sql(compiled.node.compiled_code).collect()
        return [tuple(row) for row in found]

    def operation(self, macro: str, **arguments: Any) -> Outcome:
        return self("run-operation", macro, "--args", json.dumps(arguments))


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all data of the suite."""
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="session")
def project_at(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., DbtProject]]:
    """Creates a project. All projects share the session that the first one starts."""

    def make(**keys: Any) -> DbtProject:
        return DbtProject(tmp_path_factory.mktemp("dbt") / "project", lake / "warehouse", **keys)

    yield make
    from pyspark.sql import SparkSession

    if (session := SparkSession.getActiveSession()) is not None:
        session.stop()


@pytest.fixture(scope="session")
def dbt(project_at: Callable[..., DbtProject]) -> DbtProject:
    """The project in Spark's own warehouse, with a running session."""
    project = project_at(schema="main")
    assert project("debug").success
    return project


@pytest.fixture
def spark(dbt: DbtProject) -> SparkSession:
    """The session that dbt started."""
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()


@pytest.fixture
def rows(spark: SparkSession) -> Callable[[str], list[tuple[Any, ...]]]:
    """Runs a query in plain Spark."""
    return lambda sql: sorted(tuple(row) for row in spark.sql(sql).collect())


@pytest.fixture
def folders(lake: Path) -> Callable[[], set[str]]:
    """The existing folders of tables, as ``schema.db/table``."""

    def found() -> set[str]:
        return {str(path.relative_to(lake)) for path in lake.glob("*/*/*") if path.is_dir()}

    return found
