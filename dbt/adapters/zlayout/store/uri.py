"""Absolute URIs of files, in the spelling that Spark writes and reads."""

from __future__ import annotations

import re
from urllib.parse import quote

# RFC 3986 path characters that java.net.URI keeps. All others, including '%' and non-ASCII letters, are written as
# escaped UTF-8: `new Path(new URI(text))` decodes them to the real name. The name of a partition folder may itself
# contain an escape (`k=a%2Fb`); its '%' becomes '%25', so that the decoded name is the one on disk.
_AUTHORITY = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)")
# In these schemes, the name before '@' is the container and not a user.
_WITH_CONTAINER = frozenset({"abfs", "abfss", "wasb", "wasbs"})
_HOST_AND_PORT = re.compile(r"(\[[0-9A-Fa-f:.]*\]|[^:@]*)(:\d*)?")
# Such as a signature in the URL of an object: `?sig=…`. Local file names may contain the same characters.
_QUERY = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]*://[^?]*\?.*=", re.DOTALL)
_ESCAPED = re.compile(r"[^A-Za-z0-9/:@!$&'()*+,;=\-._~]")

NO_LOGIN = (
    "contains login details, which would end up in catalogs and logs; put them into Spark's configuration (such as "
    "spark.hadoop.fs.s3a.access.key) and into the environment, and write only the location"
)


def qualified(root_uri: str, relative_path: str) -> str:
    """Returns the absolute URI of a file below a root.

    Args:
        root_uri: An escaped absolute URI (`Store.root_uri`).
        relative_path: The real name below the root, '/'-separated, unescaped.

    >>> qualified("file:///warehouse/t", "k=a%2Fb/part 1.parquet")
    'file:///warehouse/t/k=a%252Fb/part%201.parquet'
    """
    return f"{root_uri.rstrip('/')}/{escaped(relative_path)}"


def escaped(path: str) -> str:
    """Escapes the characters of a path that a URI may not contain."""
    return _ESCAPED.sub(lambda match: quote(match[0], safe=""), path)


def has_login(location: str) -> bool:
    """Returns whether a location contains login details; see `without_login`."""
    if _QUERY.match(location):
        return True
    match = _AUTHORITY.match(location)
    if match is None:
        return False
    scheme, authority = match.groups()
    container, at, host = authority.rpartition("@")
    if at and scheme.lower() in _WITH_CONTAINER and ":" not in container:
        authority = host
    # A secret may contain a slash, so that the part after it is not recognised as authority.
    return _HOST_AND_PORT.fullmatch(authority) is None


def without_login(location: str) -> str:
    """Returns a location without login details, safe to print.

    >>> without_login("s3://key:secret@bucket/x"), without_login("abfss://container@account/x")
    ('s3://…@bucket/x', 'abfss://container@account/x')
    >>> without_login("s3://bucket/x?X-Amz-Signature=secret")
    's3://bucket/x?…'
    """
    if _QUERY.match(location):
        return f"{without_login(location.partition('?')[0])}?…"
    if not has_login(location):
        return location
    scheme, _, rest = location.partition("://")
    return f"{scheme}://…@{rest.rpartition('@')[2]}" if "@" in rest else f"{scheme}://…"
