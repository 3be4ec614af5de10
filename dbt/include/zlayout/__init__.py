"""The folder in which dbt finds this adapter's macros."""

from __future__ import annotations

from pathlib import Path

PACKAGE_PATH = str(Path(__file__).parent)
