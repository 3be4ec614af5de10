"""JSON and files that run-operations write."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from dbt.adapters.zlayout.errors import ConfigError


def json_text(value: Any) -> str:
    """Returns a value as JSON. Values that JSON cannot express become text."""
    return json.dumps(value, default=str, ensure_ascii=False, indent=2)


def printed_and_error(text: str, error: str | None, *, for_programs: bool) -> tuple[str, str | None]:
    """Returns what an operation prints, and the error with which it ends; None without one.

    A text for people is the error itself. Programs get their text, and a short error after it.
    """
    return (text, error) if error is None or for_programs else ("", text)


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
