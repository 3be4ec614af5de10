"""A temporary folder of this machine, for stores whose files lie elsewhere."""

from __future__ import annotations

import tempfile
import weakref
from pathlib import Path


class LocalScratch:
    """A folder for unfinished files, made when it is first asked for and deleted with its owner."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def path(self) -> Path:
        """Return the existing folder."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="zlayout-")
            weakref.finalize(self, self._folder.cleanup)
        return Path(self._folder.name)
