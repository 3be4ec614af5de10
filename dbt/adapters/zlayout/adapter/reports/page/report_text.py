"""What zlayout_report prints, and how it puts its file in place."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from dbt.adapters.zlayout.adapter.reports import json_text
from dbt.adapters.zlayout.adapter.reports.page.layout_page import Unreadable, report_values
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.quantities import counted, size_text
from dbt.adapters.zlayout.table.layout_report import TableReport

_MOST_LINES = 20


def report_text(tables: Sequence[TableReport | Unreadable], path: str, size_bytes: int) -> str:
    """Returns where the report is, and the verdict on each table, worst first."""
    lines = [f"{path}: the report of {counted(len(tables), 'table')}, {size_text(size_bytes)}"]
    lines += [f"  {each.name}  {each.verdict.sentence}" for each in tables[:_MOST_LINES]]
    if len(tables) > _MOST_LINES:
        lines.append(f"  … and {counted(len(tables) - _MOST_LINES, 'more table')}")
    return "\n".join(lines)


def report_json(tables: Sequence[TableReport | Unreadable], path: str | None) -> str:
    """Returns the report as JSON, and where its page is."""
    return json_text({"path": path, "tables": report_values(tables)})


def write_whole(path: Path, text: str) -> int:
    """Writes a file in one step: a reader sees the old file or the new one. Returns its size in bytes.

    Raises:
        ConfigError: The file cannot be written.
    """
    content = text.encode()
    scratch = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(scratch).chmod(0o644)
        Path(scratch).replace(path)
    except OSError as error:
        if scratch is not None:
            with suppress(OSError):
                Path(scratch).unlink()
        raise ConfigError([f"path: {path} cannot be written ({error.strerror or error}); give another file"]) from error
    return len(content)
