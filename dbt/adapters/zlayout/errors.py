"""The error hierarchy: each message names the value, what is allowed and the next step."""

from __future__ import annotations

from collections.abc import Sequence


class ZlayoutError(Exception):
    """Base of every error that this package raises on purpose."""


class ConfigError(ZlayoutError):
    """One or more settings are wrong; the message names all of them.

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
    """A metadata file of the table cannot be understood."""


class NewerFormatError(CorruptError):
    """A newer release wrote something that this one cannot read."""


class TableNotFoundError(ZlayoutError):
    """No table exists under this name or path, or it is not a zlayout table."""


class TableLostError(TableNotFoundError):
    """The catalog has a zlayout table whose folder holds none any more: it was moved, deleted or overwritten."""


class VersionNotFoundError(ZlayoutError):
    """The table has no such version, or the version's files were cleaned."""


class ConflictError(ZlayoutError):
    """Another writer committed a change that this commit conflicts with.

    Attributes:
        what: The message without the next step.
    """

    def __init__(self, what: str, then: str = "") -> None:
        super().__init__(f"{what}: {then}" if then else what)
        self.what = what


class CommittedError(ZlayoutError):
    """The version is committed, but readers may not see it yet; do not repeat the write.

    Attributes:
        version: The committed version.
    """

    def __init__(self, version: int, problem: str, next_step: str) -> None:
        self.version = version
        super().__init__(f"version {version} is committed, but {problem}; {next_step}")


class UnsupportedError(ZlayoutError):
    """The type, location or feature is not supported."""


class CancelledError(ZlayoutError):
    """The user has stopped the run; the step that raises it has written nothing."""


class WriteError(ZlayoutError):
    """The rows could not be written; the table is unchanged."""
