"""The profile: the keys of a target with ``type: zlayout``."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Optional

from dbt.adapters.spark.connections import SparkConnectionMethod, SparkCredentials
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.zlayout.store.opening import place_problem
from dbt.adapters.zlayout.store.uri import without_login

_ANSI = "spark.sql.ansi.enabled"


@dataclass
class ZlayoutCredentials(SparkCredentials):
    """The credentials of a target. A profile only needs ``schema``.

    Attributes:
        location_root: Folder for the tables of this target, or None for Spark's warehouse. The folder of a table is
            ``<location_root>/<schema>/<identifier>``. A model's own ``location_root`` takes precedence.
        server_side_parameters: Spark configuration (master, memory, catalogs). The adapter never overrides these keys.
    """

    # mashumaro reads these annotations at run time. Python 3.10 and dbt's own schemas need Optional there.
    host: Optional[str] = "NA"  # noqa: UP045 # see above
    method: SparkConnectionMethod = SparkConnectionMethod.SESSION
    location_root: Optional[str] = None  # noqa: UP045 # see above

    @classmethod
    def validate(cls, data: Any) -> None:
        """Checks a raw profile before dbt does, so that one error names all problems and how to fix them.

        Raises:
            DbtRuntimeError: The profile has problems. The message names every one.
        """
        problems = [
            *_wrong_method(data.get("method")),
            *_misspelled(data, {field.name for field in fields(cls)}),
            *_wrong_root(data.get("location_root")),
        ]
        if problems:
            raise DbtRuntimeError("\n  ".join(problems))
        super().validate(_with_text_parameters(data))

    @classmethod
    def __pre_deserialize__(cls, data: Any) -> Any:
        return _with_text_parameters(super().__pre_deserialize__(data))

    def __post_init__(self) -> None:
        # dbt-spark always turns ANSI mode off. Here that is only the default.
        chosen = self.server_side_parameters.get(_ANSI)
        super().__post_init__()
        if chosen is not None:
            self.server_side_parameters[_ANSI] = chosen
        if self.location_root is not None:
            self.location_root = _absolute(self.location_root.rstrip("/") or "/")

    @property
    def type(self) -> str:
        """The adapter's name in profiles."""
        return "zlayout"

    @property
    def unique_field(self) -> str:
        """The value that dbt hashes for its telemetry. A session has no host to use."""
        return "session"

    def schema_root(self, schema: str) -> str | None:
        """Returns the folder for the tables of a schema; None if the profile leaves it to Spark."""
        return None if self.location_root is None else f"{self.location_root.rstrip('/')}/{schema}"

    def _connection_keys(self) -> tuple[str, ...]:
        # Not server_side_parameters: they may hold the keys of an object store.
        return "method", "schema", "location_root"


def _absolute(root: str) -> str:
    """Returns the full path of a local folder. Spark would resolve a schema's relative path against its warehouse."""
    return root if ":" in root.split("/", 1)[0] else str(Path(root).expanduser().absolute())


def _with_text_parameters(data: dict[str, Any]) -> dict[str, Any]:
    """Returns the profile with its Spark configuration as text. YAML parses some values as numbers and booleans."""
    parameters = data.get("server_side_parameters")
    if not isinstance(parameters, dict):
        return data
    text = {key: json.dumps(value) if isinstance(value, int | float) else value for key, value in parameters.items()}
    return {**data, "server_side_parameters": text}


def _wrong_method(method: object) -> list[str]:
    if method is None or method == SparkConnectionMethod.SESSION.value:
        return []
    return [
        (
            f"method: '{method}' is not supported; write 'session': dbt starts Spark itself, with the master and other"
            " settings in server_side_parameters. For a Thrift, HTTP or ODBC endpoint use `type: spark` (dbt-spark)"
        )
    ]


def _wrong_root(root: object) -> list[str]:
    # A relative folder is resolved against the working directory. dbt rejects values that are not text.
    problem = place_problem(_absolute(root)) if isinstance(root, str) else None
    return [] if problem is None else [f"location_root: {without_login(str(root))!r} {problem}"]


def _misspelled(data: dict[str, object], known: set[str]) -> list[str]:
    return [
        f"{key}: is not a key of the profile; did you mean '{near[0]}'?"
        for key in data
        if key not in known and (near := difflib.get_close_matches(key, sorted(known), n=1, cutoff=0.8))
    ]
