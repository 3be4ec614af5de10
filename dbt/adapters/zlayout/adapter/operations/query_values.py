"""The adapter method that turns a query's values into a condition, for the macro zlayout_prune_by."""

from __future__ import annotations

from typing import Any

from dbt.adapters.base.meta import available
from dbt_common.exceptions import CompilationError

from dbt.adapters.zlayout.adapter.dbt_errors import as_dbt_errors
from dbt.adapters.zlayout.adapter.session.holder import SessionHolder
from dbt.adapters.zlayout.spark.read.prune_by import values_predicate

_ALWAYS = "true"


class QueryValues(SessionHolder):
    """Conditions from query values. A mixin of the adapter, which provides the session."""

    @available.parse(lambda *_, **__: _ALWAYS)
    def prune_by(self, column: str, query: str, max_values: int, max_ranges: int) -> str:
        """A condition that is true wherever a column has one of a query's values, from `values_predicate`.

        Raises:
            CompilationError: A limit is not a whole number of at least 1.
            DbtRuntimeError: The query failed, or the type of its column has no literals.
        """
        limits: dict[str, Any] = {"max_values": max_values, "max_ranges": max_ranges}
        for name, limit in limits.items():
            if isinstance(limit, bool) or not str(limit).isdecimal() or int(limit) < 1:
                raise CompilationError(f"zlayout_prune_by: {name}: {limit!r} is not a whole number of at least 1")
        with as_dbt_errors():
            statement = query.strip().rstrip(";")
            return values_predicate(self.session(), column, statement, int(max_values), int(max_ranges))
