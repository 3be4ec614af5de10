"""The one hierarchy of errors; each message names the value, what is allowed and the next step."""

from __future__ import annotations

from collections.abc import Sequence


class ZlayoutError(Exception):
    """Base of every error that this package raises on purpose."""


class ConfigError(ZlayoutError):
    """One or more settings are wrong; all of them are named.

    Attributes:
        problems: One sentence for each wrong setting.
    """

    def __init__(self, problems: Sequence[str], subject: str = "") -> None:
        self.problems = tuple(problems)
        head = f"{subject}: " if subject else ""
        noun = "problem" if len(self.problems) == 1 else "problems"
        lines = "\n".join(f"  - {problem}" for problem in self.problems)
        super().__init__(f"{head}{len(self.problems)} configuration {noun}\n{lines}")


class StoreError(ZlayoutError):
    """A file could not be read, written or listed."""


class FileMissingError(StoreError):
    """A file that should be there is not."""


class AlreadyExistsError(StoreError):
    """A create-if-absent found the file present: another writer was first."""


class CorruptError(ZlayoutError):
    """A file of the table's metadata cannot be understood."""


class NewerFormatError(CorruptError):
    """A newer release has written what this one cannot understand."""


class TableNotFoundError(ZlayoutError):
    """No table, or no zlayout table, has this name or lies at this place."""


class VersionNotFoundError(ZlayoutError):
    """The table has no such version, or the version's files were cleaned."""


class ConflictError(ZlayoutError):
    """Another writer committed something that this commit cannot follow."""


class CommittedError(ZlayoutError):
    """A version is committed, but readers may not see it yet: nothing of the write is to run again.

    Attributes:
        version: The version.
    """

    def __init__(self, version: int, problem: str, next_step: str) -> None:
        self.version = version
        super().__init__(f"version {version} is committed, but {problem}; {next_step}")


class UnsupportedError(ZlayoutError):
    """A type, a place or a feature that cannot be served."""


class WriteError(ZlayoutError):
    """The rows could not be written; the table is as it was."""
