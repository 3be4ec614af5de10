"""The session's choice of skipping stages, ``spark.zlayout.skipping``: all of them unless it says otherwise."""

from __future__ import annotations

import logging
from typing import Any

from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.pruning.scan import STAGES
from dbt.adapters.zlayout.spark.jvm.scala import Jvm

KEY = "spark.zlayout.skipping"
ALL, _NONE = "all", "none"
_SQL_CONF = "org.apache.spark.sql.internal.SQLConf"
_LOG = logging.getLogger(__name__)


def parse_stages(text: str) -> tuple[str, ...]:
    """Returns the stages that a value of the setting names.

    Raises:
        ConfigError: The value is neither ``all``, ``none`` nor a list of stages.

    >>> parse_stages("all")
    ('partition_stats', 'files', 'column_stats', 'expression_stats', 'lookup', 'bloom')
    >>> parse_stages("partition_stats, files")
    ('partition_stats', 'files')
    >>> parse_stages("none")
    ()
    """
    words = [each.strip().lower() for each in text.split(",")]
    if words in ([ALL], [_NONE]):
        return STAGES if words == [ALL] else ()
    if unknown := [each for each in words if each not in STAGES]:
        raise ConfigError(
            [f"{KEY}: {unknown[0]!r} is not a stage; give '{ALL}', '{_NONE}', or some of {', '.join(STAGES)}"]
        )
    return tuple(each for each in STAGES if each in words)


def session_stages(jvm: Jvm) -> tuple[str, ...]:
    """Returns the stages that the session of the statement being planned wants; all of them if its value is wrong."""
    text = session_setting(jvm, KEY, ALL)
    try:
        return parse_stages(text)
    except ConfigError as error:
        _LOG.warning("%s; until then all stages skip files", error.problems[0])
        return STAGES


def session_setting(jvm: Jvm, key: str, default: str = "") -> str:
    """Returns a setting of the session of the statement being planned."""
    # One call a scan: a small merge plans many.
    return str(jvm.once(_setting_of_session, key, default).get())


def _setting_of_session(jvm: Jvm, key: str, default: str) -> Any:
    """Returns a ``Supplier`` of the setting in the session that plans on the calling thread."""
    conf = jvm.static(_SQL_CONF, "get", f"()L{_SQL_CONF.replace('.', '/')};")
    get = jvm.virtual(_SQL_CONF, "getConfString", "(Ljava/lang/String;Ljava/lang/String;)Ljava/lang/String;")
    supplier = jvm.then(conf, jvm.fixed(get, 1, key, default))
    return jvm.function(supplier, "java.util.function.Supplier", "()Ljava/lang/Object;")
