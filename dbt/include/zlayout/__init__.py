"""Where dbt finds the macros of this adapter."""

from __future__ import annotations

from pathlib import Path

PACKAGE_PATH = str(Path(__file__).parent)
