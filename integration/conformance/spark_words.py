"""What the tests say in the SQL of Postgres, in words that Spark has.

Spark has other names for some types, other quotes, no database above a schema and no materialized views.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_PARTS = re.compile(
    r"(?P<text>'(?:[^']|'')*')|\"(?P<name>[^\"]*)\"|(?P<comment>--[^\n]*)|(?P<end>;)|(?P<words>[^'\";-]+|-)"
)
_SPARK_WORDS = (
    (re.compile(r"`?\bNone`?\s*\.", re.IGNORECASE), ""),
    (re.compile(r"\btimestamp\s+without\s+time\s+zone\b", re.IGNORECASE), "timestamp"),
    (re.compile(r"\bvarchar\(\d+\)\s+default\s+null\b", re.IGNORECASE), "string"),
    (re.compile(r"\btext\b", re.IGNORECASE), "string"),
    (re.compile(r"\bcreate\s+materialized\s+view\b", re.IGNORECASE), "create view"),
)

Files = Mapping[str, Any]


def said_in_spark(files: Files, words: Mapping[str, str]) -> dict[str, Any]:
    """Project files with words replaced; a word that is nowhere is an error, so that none outlives its use."""
    unused = set(words)

    def said(content: Any) -> Any:
        if isinstance(content, Mapping):
            return {name: said(part) for name, part in content.items()}
        if isinstance(content, list):
            return [said(part) for part in content]
        if isinstance(content, str):
            for found, replacement in words.items():
                if found in content:
                    unused.discard(found)
                    content = content.replace(found, replacement)
        return content

    replaced = {name: said(content) for name, content in files.items()}
    assert not unused, f"in_spark names what is in no file: {sorted(unused)}"
    return replaced


def spark_statements(sql: str) -> list[str]:
    """Single statements, in Spark's words."""
    statements = [""]
    for part in _PARTS.finditer(sql):
        if part["end"]:
            statements.append("")
        elif part["name"] is not None:
            statements[-1] += f"`{part['name']}`"
        elif part["text"]:
            statements[-1] += part["text"]
        elif part["words"]:
            words = part["words"]
            for found, said in _SPARK_WORDS:
                words = found.sub(said, words)
            statements[-1] += words
    return [statement for statement in statements if statement.strip()]
