"""The output of run-operations: text for people, JSON for programs."""

from __future__ import annotations

import json
from typing import Any


def json_text(value: Any) -> str:
    """Returns a value as JSON. Values that JSON cannot express become text."""
    return json.dumps(value, default=str, ensure_ascii=False, indent=2)
