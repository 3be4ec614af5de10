"""The base class of the adapter's parts: the session, and a project's tables in it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from dbt.adapters.base.meta import AdapterMeta

from dbt.adapters.zlayout.errors import TableNotFoundError
from dbt.adapters.zlayout.table.ztable import ZTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SessionHolder(metaclass=AdapterMeta):
    """A part of the adapter. The adapter itself provides the session."""

    def session(self) -> SparkSession:
        """The session of the thread's connection."""
        raise NotImplementedError

    def tables_with_index(self, names: Iterable[str]) -> list[ZTable]:
        """Opens the dbt-zlayout tables among some names.

        Other names are skipped: a project also has views, tables of other formats, and models that were never built.

        Args:
            names: ``schema.identifier``, in backquotes.
        """
        found = []
        for name in names:
            with suppress(TableNotFoundError):
                found.append(ZTable.for_name(self.session(), name))
        return found
