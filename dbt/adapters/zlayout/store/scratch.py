"""Local scratch: a temporary folder for stores whose files are elsewhere."""

from __future__ import annotations

import tempfile
import weakref
from pathlib import Path


class LocalScratch:
    """A folder for unfinished files, created on first use and deleted with its owner."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def path(self) -> Path:
        """Return the existing folder."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="zlayout-")
            weakref.finalize(self, self._folder.cleanup)
        return Path(self._folder.name)
