"""Absolute URIs of files, in the spelling that Spark writes and reads back."""

from __future__ import annotations

import re
from urllib.parse import quote

# RFC 3986 path characters that java.net.URI leaves alone. All else, '%' and non-ASCII letters included, is written as
# escaped UTF-8: `new Path(new URI(text))` decodes it to the real name. The name of a partition folder may itself hold
# an escape (`k=a%2Fb`); its '%' becomes '%25', so that the decoded name is the one on disk.
_ESCAPED = re.compile(r"[^A-Za-z0-9/:@!$&'()*+,;=\-._~]")


def qualified(root_uri: str, relative_path: str) -> str:
    """Return the absolute URI of a file below a root.

    Args:
        root_uri: An escaped absolute URI (`Store.root_uri`).
        relative_path: The real name below the root, '/'-separated, unescaped.

    Returns:
        For example 'file:///warehouse/t/k=a%252Fb/part%201.parquet'.
    """
    return f"{root_uri.rstrip('/')}/{escaped(relative_path)}"


def escaped(path: str) -> str:
    """Escape the characters of a path that may not stand in a URI.

    Args:
        path: Real names, '/'-separated.
    """
    return _ESCAPED.sub(lambda match: quote(match[0], safe=""), path)
