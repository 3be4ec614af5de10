"""Path safety: paths below a root are relative, and each segment is a name."""

from __future__ import annotations

import re

from dbt.adapters.zlayout.errors import StoreError

# An empty segment (also at the start of an absolute path), '.' or '..'.
_LEADS_OUT = re.compile(r"(?:^|/)\.{0,2}(?:/|$)|\x00", re.ASCII)


def is_inside(path: str) -> bool:
    """Return whether a path is the canonical path of a file below the root."""
    return _LEADS_OUT.search(path) is None


def check_inside(path: str) -> None:
    """Check that a path is below the root.

    Raises:
        StoreError: It is absolute, or has a segment that is empty, '.' or '..': it may lead out of the table's folder.
    """
    if not is_inside(path):
        raise StoreError(f"{path!r} is no path of a file below the table's folder; nothing is done with it")
