"""Lets the tests of this folder import their made-up tables, and gives them one browser."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from browser import Browser, chromium


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    program = chromium()
    if program is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium-headless-shell)")
    with Browser(program) as opened:
        yield opened
