"""The examples of README and docs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`(dbt [^`]+)`")


@dataclass(frozen=True)
class Example:
    """A block of a page, or a part of one.

    Attributes:
        page: Relative to the project.
        number: Among the blocks of its kind on the page.
        text: As a reader would paste it.
    """

    page: str
    number: int
    text: str

    @property
    def name(self) -> str:
        """A name for a model."""
        return re.sub(r"\W+", "_", self.page.removesuffix(".md")).lower() + f"_{self.number}"


def blocks(kind: str) -> list[Example]:
    """All blocks of a kind."""
    return list(_blocks(kind))


def _blocks(kind: str) -> Iterator[Example]:
    for path in PAGES:
        page = path.relative_to(ROOT).as_posix()
        found = [text for said, text in _BLOCK.findall(path.read_text("utf-8")) if said == kind]
        yield from (Example(page, number, text) for number, text in enumerate(found, 1))


def commands() -> list[Example]:
    """Each line of the console blocks, without its prompt."""
    return [
        Example(block.page, block.number, line.removeprefix("$ ").strip())
        for block in blocks("console")
        for line in block.text.splitlines()
        if line.strip()
    ]


def inline_commands() -> list[Example]:
    """Commands of dbt in sentences and tables."""
    return [
        Example(path.relative_to(ROOT).as_posix(), number, text)
        for path in PAGES
        for number, text in enumerate(_INLINE.findall(_BLOCK.sub("", path.read_text("utf-8"))), 1)
    ]


def words(command: str) -> list[str]:
    """A command, split as in a shell."""
    return shlex.split(command, comments=True)


def queries() -> list[Example]:
    """The models of the SQL blocks, one for each query."""
    found = []
    for block in blocks("sql"):
        parts = (
            re.split(r"^(?=select \*)", block.text, flags=re.MULTILINE) if "config(" not in block.text else [block.text]
        )
        texts = [part for part in parts if part.strip()]
        found += [Example(block.page, block.number * 10 + number, text) for number, text in enumerate(texts)]
    return found
