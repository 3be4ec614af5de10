"""The file index of an indexed table, which others write: Spark lists the files, our index says which to skip."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.predicate.expr import Expr
from dbt.adapters.zlayout.spark.jvm.scala import Jvm
from dbt.adapters.zlayout.spark.read.file_index import ExplainedFilters, ZlayoutFileIndex
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot

_LOG = logging.getLogger(__name__)
_STATUS = re.compile(r"path=(.*?); isDirectory=false; length=(\d+);.*?modification_time=(\d+);")


class IndexedFileIndex(ZlayoutFileIndex):
    """Spark's own file index without the files that cannot hold a matching row.

    A file is always read if the index does not know its path, or knows it with another size or modification time.

    Args:
        jvm: The driver's JVM.
        opened: The index at its newest version.
        schema_json: The table's current columns in the catalog.
        base: Spark's own ``FileIndex`` of the table (Py4J object).
    """

    def __init__(self, jvm: Jvm, opened: TableSnapshot, schema_json: str, base: Any) -> None:
        super().__init__(jvm, opened, schema_json)
        self.base = base

    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:  # noqa: N802 - Spark's name
        """Returns a ``Seq[PartitionDirectory]`` of the files that may hold a matching row."""
        directories = self.base.listFiles(partition_filters, data_filters)
        if data_filters.isEmpty():
            return directories
        try:
            return self._pruned(directories, self.predicate(data_filters))
        except Exception:  # a broken index costs speed, never a result
            _LOG.warning("skipping is off for one scan of %s", self.opened.location, exc_info=True)
            return directories

    def explained(self, partition_filters: Any, data_filters: Any, others: Sequence[Any] = ()) -> ExplainedFilters:
        """Explains the files that the index knows. All other files are read."""
        predicate = self.predicate(partition_filters, data_filters, others=others)
        plan = self.opened.scan(predicate)
        return ExplainedFilters(predicate, plan, self.opened.report(plan, predicate))

    def rootPaths(self) -> Any:  # noqa: N802 - Spark's name
        """Same as in Spark's own file index."""
        return self.base.rootPaths()

    def inputFiles(self) -> Any:  # noqa: N802 - Spark's name
        """Same as in Spark's own file index."""
        return self.base.inputFiles()

    def sizeInBytes(self) -> int:  # noqa: N802 - Spark's name
        """Same as in Spark's own file index."""
        return int(self.base.sizeInBytes())

    def partitionSchema(self) -> Any:  # noqa: N802 - Spark's name
        """Same as in Spark's own file index."""
        return self.base.partitionSchema()

    def refresh(self) -> None:
        """Makes Spark list the files again."""
        self.base.refresh()

    def equals(self, other: object) -> bool:
        """Whether both have the same listing and the same version of the index."""
        return (
            isinstance(other, IndexedFileIndex)
            and other.opened.identity == self.opened.identity
            and bool(self.base.equals(other.base))
        )

    def listed(self) -> pa.Table:
        """Returns Spark's listing with the columns ``uri`` (unescaped), ``size_bytes`` and ``modified_ms``."""
        directories = self.base.listFiles(self._jvm.seq([]), self._jvm.seq([]))
        return pa.concat_tables([_statuses(directories.apply(i)) for i in range(directories.size())] or [_NONE])

    def known(self, listed: pa.Table) -> pa.Array:
        """Returns the position of each listed file in the index; null if the file is unknown or has changed."""
        files = self.opened.files
        root = self.opened.root_path()
        paths = pc.binary_join_element_wise(root, files.column("path").combine_chunks(), "/")
        position = pc.index_in(listed.column("uri").combine_chunks(), value_set=paths)
        same = pc.is_valid(position)
        for name in ("size_bytes", "modified_ms"):
            stored = files.column(name).combine_chunks().take(position)
            same = pc.and_(same, pc.fill_null(pc.equal(listed.column(name).combine_chunks(), stored), False))
        return pc.if_else(same, position, pa.scalar(None, position.type))

    def _pruned(self, directories: Any, predicate: Expr) -> Any:
        candidates = self.opened.scan(predicate).candidates
        make = self._jvm.datasources.PartitionDirectory
        kept = []
        left = total = 0
        for position in range(directories.size()):
            directory = directories.apply(position)
            listed = _statuses(directory)
            keep = self._keep(listed, candidates)
            left, total = left + int(keep.sum()), total + len(keep)
            if keep.all():
                kept.append(directory)
            elif keep.any():
                files = self._jvm.java_list(directory.files())
                chosen = self._jvm.pick(files, np.packbits(keep, bitorder="little").tobytes())
                kept.append(make(directory.values(), self._jvm.seq_of(chosen)))
        self.last_scan = (left, total)
        return self._jvm.seq(kept)

    def _keep(self, listed: pa.Table, candidates: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        position = self.known(listed)
        keep = np.ones(len(position), dtype=bool)
        certain = np.flatnonzero(position.is_valid().to_numpy(zero_copy_only=False))
        keep[certain] = candidates[position.drop_null().to_numpy()]
        return keep


_NONE = pa.table(
    {"uri": pa.array([], pa.string()), "size_bytes": pa.array([], pa.int64()), "modified_ms": pa.array([], pa.int64())}
)


def _statuses(directory: Any) -> pa.Table:
    files = directory.files()
    found = _STATUS.findall(str(files.mkString("\n")))
    if len(found) != int(files.size()):
        raise ValueError("Spark's listing cannot be read")
    uris, sizes, times = zip(*found, strict=True) if found else ((), (), ())
    return pa.table(
        {
            "uri": pa.array(uris, pa.string()),
            "size_bytes": pa.array([int(each) for each in sizes], pa.int64()),
            "modified_ms": pa.array([int(each) for each in times], pa.int64()),
        }
    )
