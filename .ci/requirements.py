"""Lock files as pip and uv write them."""

from __future__ import annotations


def by_name(lock: str) -> dict[str, str]:
    """Return the text of each requirement by its name. One starts in the first column and goes on in indented lines.

    A package with several versions, each for other Pythons, is one text. Comments are left out.
    """
    found: dict[str, str] = {}
    name = ""
    for line in lock.splitlines(keepends=True):
        if line.lstrip().startswith("#") or not line.strip():
            continue
        if not line[0].isspace():
            name = line.partition("==")[0]
        found[name] = found.get(name, "") + line
    return found


def replaced(lock: str, replacement: str) -> str:
    """Return the requirements of a lock, with those of another lock in the place of the ones of the same name."""
    return "".join({**by_name(lock), **by_name(replacement)}.values())
