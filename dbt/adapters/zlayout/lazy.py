"""A property that is computed once for each object, without a lock."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property(functools.cached_property):
        """``functools.cached_property`` as Python 3.12 has it.

        Up to Python 3.11, all objects of a class share one lock, which is held while one of them computes the value.
        Two threads of dbt that write two tables would wait there for each other's Spark jobs and files.
        """

        def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
            """Returns the value. Two threads may compute it at once; both get that of the first."""
            if instance is None:
                return self
            return instance.__dict__.setdefault(self.attrname, self.func(instance))


__all__ = ["cached_property"]
