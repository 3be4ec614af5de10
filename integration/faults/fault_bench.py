"""The bench: tables in the state that an action finds, and writers that do the action on them."""

import json
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import fault_actions
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from fault_points import changes, logged
from fault_rows import Rows, frame_of, rows_of
from pyiceberg.table import StaticTable

from dbt.adapters.zlayout.config.table_config import parse_table_config
from dbt.adapters.zlayout.errors import TableNotFoundError
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.table.ztable import ZTable

SEED = 3
# Tables that a dead writer left: what it did, and which change it did not come to.
_DEATHS = {"unfinished": ("append_many", "link log"), "unpublished": ("append", "rename manifest")}


class Bench:
    """One JVM, one warehouse, one process that forks writers.

    Args:
        spark: A session of this process; readers and the writers that come after a fault use it.
        base: A folder of its own; tables go below ``tables``.
    """

    def __init__(self, spark, base: Path) -> None:
        self.spark = spark
        self.base = base
        self.tables = base / "tables"
        self.order_file = base / "order.json"
        self.before: dict[str, Rows | None] = {}
        self.published: dict[str, Rows | None] = {}
        self._entries: dict[str, object] = {}
        self._dry: dict[tuple[str, str], list[str]] = {}
        self._yard = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("fault_yard.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        self._yard.stdin.close()
        self._yard.wait()
        self._yard.stdout.close()

    def name(self, template: str) -> str:
        """The table's name in the catalog."""
        return f"{fault_actions.SCHEMA}.{template}"

    def folder(self, template: str) -> Path:
        """The table's folder."""
        return self.tables / template

    def restore(self, template: str) -> None:
        """Puts folder and catalog entry back into the state that actions find."""
        if template not in self.before:
            self._make(template)
            return
        for folder in [*self.tables.glob(f"{template}__*"), self.folder(template)]:
            shutil.rmtree(folder, ignore_errors=True)
        saved = self.base / "saved" / template
        if saved.exists():
            shutil.copytree(saved, self.folder(template))
        self._restore_entry(template)
        self.forget_orders()

    def jobs(self, actions: list[tuple[str, int]], template: str, *, at: int = 0, fault: str = "none") -> list[dict]:
        """Jobs for writers that begin together; only the first is at fault where one is asked for."""
        now = time.time()
        found = []
        for number, (action, seed) in enumerate(actions):
            order_file = self.order_file if len(actions) == 1 else self.base / f"order-{number}.json"
            for stale in (order_file, logged(order_file)):
                stale.unlink(missing_ok=True)
            found.append(
                {
                    "action": action,
                    "seed": seed,
                    "table": self.name(template),
                    "base": str(self.base),
                    "order_file": str(order_file),
                    "answer_file": str(self.base / f"answer-{number}.json"),
                    "at": at if number == 0 else 0,
                    "fault": fault if number == 0 else "none",
                    "start": now if len(actions) == 1 else now + 1.5 + random.Random(seed).uniform(0, 0.6),
                }
            )
        return found

    def write(self, jobs: list[dict]) -> list[dict]:
        """Runs writers at the same time and waits for all; what Spark still does for dead ones is stopped."""
        servers = [self._gateway() for _ in jobs]
        try:
            for job, server in zip(jobs, servers, strict=True):
                job["gateway"] = [server.getListeningPort(), server.secret()]
            self._yard.stdin.write(json.dumps(jobs) + "\n")
            self._yard.stdin.flush()
            answers = json.loads(self._yard.stdout.readline())
            context = self.spark.sparkContext
            while context.statusTracker().getActiveJobsIds():
                context.cancelAllJobs()
                time.sleep(0.02)
            return answers
        finally:
            for server in servers:
                server.shutdown()

    def dry(self, action: str, template: str) -> list[str]:
        """The changes that an action makes when nothing fails."""
        if (action, template) not in self._dry:
            self.restore(template)
            (answer,) = self.write(self.jobs([(action, SEED)], template))
            assert "version" in answer, answer.get("trace")
            self._dry[action, template] = changes(self.order_file)
        return self._dry[action, template]

    def _gateway(self):
        jvm = self.spark.sparkContext._jvm
        server = jvm.org.apache.spark.api.python.Py4JServer(self.spark.sparkContext._jsc.sc().conf())
        server.start()
        return server

    def forget_orders(self) -> None:
        """Takes back all orders."""
        # Without an order Spark's workers count nothing.
        for path in [*self.base.glob("order*.json"), *self.base.glob("order*.log")]:
            path.unlink()

    def _make(self, template: str) -> None:
        name, spark = self.name(template), self.spark
        self.forget_orders()
        if template in fault_actions.FOREIGN:
            self._make_foreign(template)
        elif template in fault_actions.FOLLOWING:
            fault_actions.begin_following(spark, name, template)
        elif template != "nothing":
            table = fault_actions.write(spark, name, fault_actions.FIRST, **_settings(template))
            if template == "records":
                for number in range(3):
                    table.upsert(frame_of(spark, [(k, number) for k in range(number * 100, number * 100 + 130)]))
                table.delete("k between 40 and 60")
            for number in range(9 if template == "long" else template != "records"):
                table.append(frame_of(spark, [(50_000 + number, number)]))
            if template == "sparse":
                # From here on all columns have statistics; those of the files before are for a refresh.
                wider = parse_table_config({"zorder": ["k"], "target_file_size": "16kb", "retain_hours": 0})
                table.append(frame_of(spark, [(60_000, 0)]), settings=wider)
            if template == "kept":
                table.delete("k < 100")
                table.merge(frame_of(spark, [(k, -k) for k in range(50, 150)]), "k")
        self._save(template)
        if template in _DEATHS:
            self._die(template, *_DEATHS[template])
            self._save(template)
        self.forget_orders()

    def _make_foreign(self, template: str) -> None:
        frame_of(self.spark, fault_actions.FIRST).write.parquet(str(self.folder(template)))
        self.spark.catalog.createTable(self.name(template), path=str(self.folder(template)), source="parquet")
        if template == "indexed":
            ZTable.adopt(self.spark, self.name(template))

    def _die(self, template: str, action: str, label: str) -> None:
        """Kills a writer right before its first change of a kind."""
        for _ in range(5):
            number = 1 + next(n for n, each in enumerate(self.dry(action, template)) if each.endswith(label))
            self.restore(template)
            self.write(self.jobs([(action, SEED)], template, at=number, fault="kill"))
            if changes(self.order_file)[-1].endswith(f"{label} killed"):
                return
        raise AssertionError(f"no writer died before {label}")

    def _save(self, template: str) -> None:
        saved = self.base / "saved" / template
        shutil.rmtree(saved, ignore_errors=True)
        if self.folder(template).exists():
            shutil.copytree(self.folder(template), saved)
        entry = self._catalog.find(self._catalog.name(self.name(template)))
        self._entries[template] = entry
        self.before[template] = None if entry is None else self.newest(template)
        self.published[template] = None if entry is None else self.plain(template)

    def newest(self, template: str) -> Rows:
        """The rows of the newest version, by the log; of a table that is not ours, what Spark reads."""
        try:
            table = ZTable.for_name(self.spark, self.name(template))
        except TableNotFoundError:
            return self.plain(template)
        return rows_of(table.read()) if table.is_managed else self.plain(template)

    def plain(self, template: str) -> Rows:
        """The rows that a Spark reads from the folder which knows nothing of the package.

        The folder of a merge-on-read table shows records; its rows are told by the view.
        """
        if template in fault_actions.RECORDS:
            return self.named(template)
        return rows_of(self.spark.newSession().read.parquet(str(self.folder(template))))

    def shared(self, template: str) -> dict[str, Rows | None]:
        """The rows that readers of each published format see; None where they find no table."""
        folder, found = self.folder(template), {}
        for name, read, missing in (
            ("Delta", lambda: DeltaTable(str(folder)).to_pyarrow_table(), DeltaError),
            ("Iceberg", lambda: StaticTable.from_metadata(f"file://{folder}").scan().to_arrow(), FileNotFoundError),
        ):
            try:
                rows = read().to_pylist()
            except missing:  # noqa: PERF203 - two formats
                found[name] = None
            else:
                found[name] = Counter((row["k"], row["v"], row.get("extra")) for row in rows)
        return found

    def named(self, template: str) -> Rows | None:
        """The same by name; None where the catalog has no such table."""
        session = self.spark.newSession()
        if not session.catalog.tableExists(self.name(template)):
            return None
        return rows_of(session.table(self.name(template)))

    @property
    def _catalog(self) -> Catalog:
        return Catalog(self.spark)

    def _restore_entry(self, template: str) -> None:
        catalog, wanted = self._catalog, self._entries[template]
        if template in fault_actions.RECORDS:
            # No action of the suite changes the views or the table beneath them.
            catalog.forget_relation(catalog.name(f"{self.name(template)}__files"))
            return
        catalog.remove(catalog.name(f"{self.name(template)}_new"))
        entry = catalog.find(catalog.name(self.name(template)))
        if _same(entry, wanted):
            catalog.forget_relation(catalog.name(self.name(template)))
            return
        if entry is not None:
            catalog.remove(entry.name)
        if wanted is not None:
            catalog._native.createTable(wanted.native, False, False)


def _settings(template: str) -> dict:
    settings = {"retain_hours": 24} if template == "kept" else {}
    settings |= {"publish": ["delta", "iceberg"]} if template == "shared" else {}
    settings |= {"partition_by": ["p"]} if template == "partitioned" else {}
    settings |= {"zorder": ["k"], "stats_columns": ["k"]} if template == "sparse" else {}
    settings |= {"bloom": ["k", "note"], "lookup": ["k"]} if template == "filtered" else {}
    if template == "records":
        settings |= {"table_type": "merge_on_read", "unique_key": "k", "compaction": "off", "zorder": ["k"]}
    return settings


def _same(entry, wanted) -> bool:
    if entry is None or wanted is None:
        return entry is wanted
    mine, theirs = (
        (each.location, each.schema_json, each.partition_by, dict(each.properties)) for each in (entry, wanted)
    )
    return mine == theirs
