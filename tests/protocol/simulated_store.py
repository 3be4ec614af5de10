"""A store of which a scheduler releases every effect, and the world that the effects change.

Clock, pause and the liveness of other processes are effects too, so what a writer does depends on the results of its
effects alone; and worlds are values, so that a schedule can go on from any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dbt.adapters.zlayout.errors import AlreadyExistsError, FileMissingError
from dbt.adapters.zlayout.lazy import cached_property
from dbt.adapters.zlayout.store.protocol import StoredFile, StoredFiles
from dbt.adapters.zlayout.timeline.files.naming import CLEAN_FOLDER

T0_MS = 1_700_000_000_000
HOUR_MS = 3_600_000

Effect = tuple[Any, ...]
Result = Any
MUTATIONS = frozenset({"create", "put", "delete", "delete_tree"})
_MISSING = "missing"
_EXISTS = "exists"


@dataclass(frozen=True)
class World:
    """All files, and what can be seen of the writers.

    Attributes:
        files: (path, content), sorted.
        dead: Process ids that exist no more.
        hours: Hours that went by without a sign of anybody.
        late: Log entries that dead writers sent and that have not arrived.
    """

    files: tuple[tuple[str, bytes], ...] = ()
    dead: frozenset[int] = frozenset()
    hours: int = 0
    late: tuple[Effect, ...] = ()

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.files, self.dead, self.hours, self.late))

    @cached_property
    def paths(self) -> frozenset[str]:
        return frozenset(path for path, _ in self.files)

    def content(self) -> dict[str, bytes]:
        return dict(self.files)

    def apply(self, effect: Effect) -> tuple[World, Result]:
        """Return the world after an effect, and what the writer is told."""
        kind, *arguments = effect
        if kind == "gone":
            return self, arguments[0] in self.dead
        if kind == "sleep":
            return self, None
        if kind == "now":
            return self, T0_MS + arguments[0] + self.hours * HOUR_MS
        files = dict(self.files)
        if kind in MUTATIONS:
            result = _change(files, kind, *arguments)
            return (self if result == _EXISTS else self._with(files)), result
        return self, _look(files, kind, *arguments)

    def _with(self, files: dict[str, bytes]) -> World:
        return replace(self, files=tuple(sorted(files.items())))


def _change(files: dict[str, bytes], kind: str, path: str, data: bytes = b"") -> Result:
    if kind == "create" and path in files:
        return _EXISTS
    if kind in {"create", "put"}:
        files[path] = data
    elif kind == "delete":
        files.pop(path, None)
    else:
        for each in [each for each in files if _is_below(each, path)]:
            del files[each]
    return None


def _look(files: dict[str, bytes], kind: str, path: str, recursive: bool = False) -> Result:
    if kind == "exists":
        return path in files
    if kind == "list":
        return tuple(
            _stored(each, content)
            for each, content in sorted(files.items())
            if _is_below(each, path) and (recursive or "/" not in each[len(path) + 1 if path else 0 :])
        )
    if path not in files:
        return _MISSING
    return files[path] if kind == "read" else _stored(path, files[path])


def _is_below(path: str, folder: str) -> bool:
    return not folder or path.startswith(folder.rstrip("/") + "/")


def _stored(path: str, content: bytes) -> StoredFile:
    return StoredFile(path, len(content), T0_MS)


class Killed(BaseException):
    """The process is no more; no handler of the product may catch this."""


@dataclass(frozen=True)
class Creation:
    """A step of a transaction: a file that it created.

    Attributes:
        count: How many of its kind there were.
        effect: With the file's path and content.
        known: What the writer knew besides.
        result: What it was told.
    """

    count: int
    effect: Effect
    known: Hashable
    result: Result


@dataclass(eq=False)
class Script:
    """The results of a writer's effects, in order; before the first one that is not known the writer waits.

    Attributes:
        results: The results.
        wait: Called with an effect, returns its result once it is released; raises `Killed`.
        known: Returns what the writer has in its memory, as far as it is not in what it creates.
        used: How many of the results were asked for.
        creations: The last file of each kind that the writer created.
        forgotten: How many results it had seen when it had created the last one.
    """

    results: list[Result]
    wait: Callable[[Effect], Result]
    known: Callable[[], Hashable] = lambda: None
    used: int = 0
    creations: dict[str, Creation] = field(default_factory=dict)
    forgotten: int = 0

    def ask(self, effect: Effect) -> Result:
        kind = effect[1].rpartition(".")[2] if _is_step(effect) else None
        if kind is not None:
            count = self.creations[kind].count + 1 if kind in self.creations else 1
            self.creations[kind] = Creation(count, effect, self.known(), "asked")
            self.forgotten = self.used
        if self.used == len(self.results):
            self.results.append(self.wait(effect))
        result = self.results[self.used]
        self.used += 1
        if kind is not None:
            self.creations[kind] = replace(self.creations[kind], result=result)
            self.forgotten = self.used
        if effect[0] == "sleep":
            # After a pause all is looked at anew, however often that was done before.
            tries = sum(created.count for key, created in self.creations.items() if key != "sleep")
            self.creations["sleep"] = Creation(tries, effect, self.known(), None)
            self.forgotten = self.used
        return result

    def memory(self) -> Hashable:
        """Return all that the writer's further steps depend on.

        What a transaction creates (requested, inflight, the entry) holds what it has decided so far; how often it has
        tried is the number of these; and the snapshot that it goes on from is asked for through `known`.
        """
        return (frozenset(self.creations.items()), tuple(self.results[self.forgotten :]))


def _is_step(effect: Effect) -> bool:
    return bool(effect[0] == "create" and not effect[1].startswith(CLEAN_FOLDER))


class LiveScript:
    """Releases every effect at once, on a world of its own."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.known: Callable[[], Hashable] = lambda: None

    def ask(self, effect: Effect) -> Result:
        self.world, result = self.world.apply(effect)
        return result


class ScriptedStore:
    """The `Store` protocol over a script.

    Args:
        script: Gives the results.
        root_uri: What tells this process's open transactions from those of other runs.
        cloud: Whether a failed request may arrive late, as where a network is in between.
    """

    def __init__(self, script: Script | LiveScript, root_uri: str, cloud: bool = False) -> None:
        self.root_uri = root_uri
        self._script = script
        self._cloud = cloud

    def read(self, path: str) -> bytes:
        return self._found(path, self._script.ask(("read", path)))

    def read_tail(self, path: str, most_bytes: int) -> bytes:
        return self.read(path)[-most_bytes:]

    def create(self, path: str, data: bytes) -> None:
        if self._script.ask(("create", path, data)) == _EXISTS:
            raise AlreadyExistsError(f"{path} already exists")

    def put(self, path: str, data: bytes) -> None:
        self._script.ask(("put", path, data))

    def put_file(self, path: str, local_file: Path) -> None:
        self.put(path, local_file.read_bytes())
        local_file.unlink()

    def exists(self, path: str) -> bool:
        return bool(self._script.ask(("exists", path)))

    def list(self, prefix: str, *, recursive: bool = False) -> StoredFiles:
        return list(self._script.ask(("list", prefix, recursive)))

    def stat(self, path: str) -> StoredFile:
        found: StoredFile = self._found(path, self._script.ask(("stat", path)))
        return found

    def delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._script.ask(("delete", path))

    def delete_tree(self, prefix: str) -> None:
        self._script.ask(("delete_tree", prefix))

    def local_path(self, path: str) -> Path | None:
        return None if self._cloud else Path("/nowhere") / path

    def local_scratch(self) -> Path:
        raise AssertionError("no writer of the protocol needs a scratch folder")

    @staticmethod
    def _found(path: str, result: Result) -> Any:
        if isinstance(result, str) and result == _MISSING:
            raise FileMissingError(f"{path}: no such file")
        return result
