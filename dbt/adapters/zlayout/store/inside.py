"""Which paths lie below a root: relative ones whose every segment is a name."""

from __future__ import annotations

import re

from dbt.adapters.zlayout.errors import StoreError

# An empty segment, which an absolute path begins with, '.' or '..'.
_LEADS_OUT = re.compile(r"(?:^|/)\.{0,2}(?:/|$)|\x00", re.ASCII)


def is_inside(path: str) -> bool:
    """Tell whether a path is that of a file below the root, and below no other way of writing it."""
    return _LEADS_OUT.search(path) is None


def check_inside(path: str) -> None:
    """Return for a path below the root.

    Raises:
        StoreError: It is absolute, or a segment of it is empty, '.' or '..': it may lead out of the table's folder.
    """
    if not is_inside(path):
        raise StoreError(f"{path!r} is no path of a file below the table's folder; nothing is done with it")
