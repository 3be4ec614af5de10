"""Every change that a writer makes to files and to the catalog, numbered, and a fault at a chosen one.

Python reports each call that changes a file system to the audit hooks of its process, whoever makes it: so the points
are found in the code that runs, and none has to be marked there. The same hook runs in Spark's Python workers.
"""

import errno
import fcntl
import json
import os
import signal
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path

from dbt.adapters.zlayout.publish import delta_log, iceberg_metadata
from dbt.adapters.zlayout.timeline.files import naming
from dbt.adapters.zlayout.timeline.files.table_file import FOLDER_NOTE

# Changes of Spark's session catalog; every other call that a writer makes of it must be known to change nothing.
CATALOG_EFFECTS = frozenset({"dropTable", "createTable", "alterTable", "alterTableStats", "renameTable"})
CATALOG_LOOKS = frozenset(
    {
        "cacheTable",
        "databaseExists",
        "getCachedTable",
        "getCurrentDatabase",
        "getDatabaseMetadata",
        "getTableMetadata",
        "getTablesByName",
        "invalidateCachedTable",
        "listDatabases",
        "listTables",
    }
)
_WORDS = {
    "open": "write",
    "os.chmod": "chmod",
    "os.link": "link",
    "os.mkdir": "mkdir",
    "os.remove": "remove",
    "os.rename": "rename",
    "os.rmdir": "rmdir",
    "os.symlink": "symlink",
    "os.truncate": "truncate",
}
_WITH_TARGET = frozenset({"os.link", "os.rename", "os.symlink"})
_DIR_FD = {"os.mkdir": 2, "os.remove": 1, "os.rmdir": 1}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_FOLDERS = {
    naming.LOG_FOLDER: "log",
    naming.CHECKPOINT_FOLDER: "checkpoint",
    naming.CLEAN_FOLDER: "clean",
    naming.TIMELINE_FOLDER: "timeline",
    naming.INDEX_FOLDER: "index",
    naming.CURVE_FOLDER: "curve",
    naming.STAGING_FOLDER: "staging",
    naming.METADATA_FOLDER: "metadata",
    naming.SPARK_MANIFEST_FOLDER: "manifest",
    delta_log.FOLDER: "delta",
    iceberg_metadata.FOLDER: "iceberg",
}
_FILES = {naming.TABLE_FILE: "table", naming.CHECKPOINT_HINT: "hint", FOLDER_NOTE: "note"}


@dataclass(frozen=True)
class Order:
    """What shall happen to one writer.

    Attributes:
        at: Number of the change, from 1; 0 for none.
        fault: 'kill'; 'full' (nothing can be written from then on), 'denied' (nor removed) or 'flaky' (this once).
        writer: Process id of the writer.
    """

    at: int
    fault: str
    writer: int

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def load(cls, path: Path) -> "Order | None":
        try:
            return cls(**json.loads(path.read_text()))
        except FileNotFoundError:
            return None


class FaultPoints:
    """The points of one process.

    Args:
        tables: The folder of all tables that are looked at.
        order_file: Where this process finds its order; changes are logged beside it.
        role: 'writer' or 'worker'.
    """

    def __init__(self, tables: Path, order_file: Path, role: str) -> None:
        self._tables = f"{tables}/"
        self._order_file = order_file
        self._role = role
        self._here = threading.local()

    def install(self) -> None:
        sys.addaudithook(self._audit)

    def reach(self, label: str, *, writes: bool = True) -> None:
        """Numbers a change that is about to be made, and makes it fail if it is its turn."""
        order = Order.load(self._order_file)
        if order is None:
            return
        with logged(self._order_file).open("a+b") as log:
            fcntl.flock(log, fcntl.LOCK_EX)
            log.seek(0)
            before = log.read().splitlines()
            dead = any(line.endswith(b" killed") for line in before)
            number = 1 + len(before)
            killed = order.fault == "kill" and number == order.at
            if not dead:
                log.write(f"{self._role} {label}{' killed' if killed else ''}\n".encode())
                log.flush()
            if dead or killed:
                # The writer first: when a worker dies alone, the writer would see an error and roll back.
                os.kill(order.writer, signal.SIGKILL)
                os.kill(os.getpid(), signal.SIGKILL)
        if not order.at or label.startswith("catalog "):
            return
        if order.fault == "full" and number >= order.at and writes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if order.fault == "denied" and number >= order.at:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if order.fault == "flaky" and number == order.at:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def _audit(self, event: str, args: tuple) -> None:
        if event not in _WORDS or getattr(self._here, "busy", False):
            return
        self._here.busy = True
        try:
            label = self._label(event, args)
            if label is not None:
                self.reach(label, writes=event not in {"os.remove", "os.rmdir"})
        finally:
            self._here.busy = False

    def _label(self, event: str, args: tuple) -> str | None:
        if event == "open" and not args[2] & _WRITES:
            return None
        path = args[1] if event in _WITH_TARGET else args[0]
        if isinstance(path, int):
            return None
        path = os.fsdecode(path)
        folder = args[_DIR_FD[event]] if event in _DIR_FD else -1
        if folder >= 0:
            path = f"{os.readlink(f'/proc/self/fd/{folder}')}/{path}"
        if not path.startswith(self._tables):
            return None
        there = os.path.lexists(path)
        if (event == "os.mkdir" and there) or (event == "os.remove" and not there):
            return None  # the call will change nothing
        return f"{_WORDS[event]} {kind_of(path.removeprefix(self._tables).partition('/')[2].rstrip('/'))}"


def kind_of(path: str) -> str:
    """What a file or folder below a table's root is for."""
    if not path or path in _FILES or path in _FOLDERS:
        return "root" if not path else _FILES.get(path) or f"{_FOLDERS[path]} folder"
    folder, _, name = path.rpartition("/")
    if name.endswith((".requested", ".inflight", ".scheduled")):
        return name.rpartition(".")[2]
    if path.startswith(naming.STAGING_FOLDER + "/"):
        return "scratch" if folder == naming.STAGING_FOLDER and name.startswith(".") else "staged"
    if naming.is_data_path(path):
        return "data"
    while folder:
        if folder in _FOLDERS:
            return _FOLDERS[folder]
        folder = folder.rpartition("/")[0]
    return "folder" if "=" in name else path


class WatchedCatalog:
    """Spark's ``SessionCatalog`` with its changes numbered; a call that nobody has judged is an error."""

    def __init__(self, native: object, points: FaultPoints) -> None:
        self._native = native
        self._points = points

    def __getattr__(self, name: str) -> object:
        if name in CATALOG_EFFECTS:
            self._points.reach(f"catalog {name}")
        elif name not in CATALOG_LOOKS:
            raise AssertionError(f"the writer calls {name} of Spark's catalog: say in fault_points.py if it changes it")
        return getattr(self._native, name)


def watch_catalog(points: FaultPoints) -> None:
    """Numbers the changes that this process makes to Spark's catalog."""
    from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog

    original = Catalog.__init__

    def init(self: Catalog, spark: object) -> None:
        original(self, spark)
        self._native = WatchedCatalog(self._native, points)

    Catalog.__init__ = init


def logged(order_file: Path) -> Path:
    """The log of the changes made under an order."""
    return order_file.with_suffix(".log")


def changes(order_file: Path) -> list[str]:
    """The changes made under an order so far: 'role word kind', ' killed' after the last one of a dead writer."""
    try:
        return logged(order_file).read_text().splitlines()
    except FileNotFoundError:
        return []


def in_order(found: list[str]) -> list[str]:
    """Changes in a form that does not depend on how many files there are, nor on which of two workers is faster."""
    lines: list[str] = []
    group: set[str] = set()
    kind = ""
    for change in [*found, "end"]:
        role, _, rest = change.partition(" ")
        now = role if role == "worker" else "removal" if rest.startswith(("remove ", "rmdir ")) else ""
        if group and (now != kind or not now):
            lines += sorted(group)
            group = set()
        kind = now
        group.add(change)
    return lines
