"""The settings of a session that change what expressions return, and sessions that share them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbt.adapters.zlayout.spark.jvm.scala import Jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Languages with rules of their own for lower and upper case.
_OWN_CASES = frozenset(("az", "lt", "tr"))
# Settings of Spark SQL that change how a query runs, or which count by themselves. All others count.
_SAME_RESULTS = re.compile(
    r"spark\.sql\.(adaptive|ansi\.enabled$|artifact|auto|broadcast|cache|caseSensitive$|catalog|cbo|codegen|columnVector|"
    r"debug|defaultCatalog|event|exchange|execution|extensions|filesource|files\.(ignore|max|min|open)|globalTempDatabase|hive|"
    r"inMemory|join|leafNode|legacy\.createHive|limit|max|metadataCache|optimizer\.(?!enable(Csv|Json))|parquet\.(?!fieldId)|pyspark|query|"
    r"redaction|repl|session\.timeZone$|shuffle|sort|sources|statistics|streaming|subexpression|thriftServer|ui|"
    r"variable|warehouse|window)"
)


@dataclass(frozen=True)
class SessionSettings:
    """The settings of a session that change what expressions return.

    Attributes:
        ansi: Whether ANSI mode is on.
        case_sensitive: Whether names of columns, and so the columns of files, are distinguished by case.
        language: That of the driver, if it has rules of its own for lower and upper case; empty otherwise.
        others: Further settings that the session has set, each as ``key=value``.
        release: Spark's release, such as ``4.0``. Defaults of settings change from one to the next, and functions too.
    """

    ansi: bool
    case_sensitive: bool
    zone: str
    language: str
    others: tuple[str, ...]
    release: str

    def mode(self, zoned: bool) -> str:
        """Returns all but the further settings; the time zone only for an expression that may use it."""
        found = [f"spark {self.release}", "ansi" if self.ansi else "not ansi", self.zone if zoned else "any zone"]
        found += ["case-sensitive"] if self.case_sensitive else []
        return "; ".join([*found, *([f"language {self.language}"] if self.language else [])])

    def to_dict(self) -> dict[str, str]:
        """Returns the settings by key."""
        own = {
            "spark.sql.ansi.enabled": str(self.ansi).lower(),
            "spark.sql.caseSensitive": str(self.case_sensitive).lower(),
            "spark.sql.session.timeZone": self.zone,
        }
        return {**dict(each.split("=", 1) for each in self.others), **own}


def settings_of(jvm: Jvm, native: Any) -> SessionSettings:
    """Returns the settings of a session (Py4J object)."""
    conf = native.sessionState().conf()
    lines = str(conf.getAllConfs().mkString("\x01")).split("\x01")
    pairs = [each.split(" -> ", 1) for each in lines if " -> " in each]
    return SessionSettings(
        ansi=bool(conf.ansiEnabled()),
        case_sensitive=bool(conf.caseSensitiveAnalysis()),
        zone=str(conf.sessionLocalTimeZone()),
        language=jvm.once(_language_of_cases),
        others=tuple(sorted(f"{key}={value}" for key, value in pairs if may_change_results(key))),
        release=".".join(str(native.version()).split(".")[:2]),
    )


def session_beside(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """Returns a new session in which expressions return what they return in the given one.

    Some functions, such as `from_json`, ask for the settings of the running query only when a task calls them. So a
    session that runs another session's query needs that session's settings.

    Args:
        spark: The session to be like.
        settings: Settings of the new session. They take precedence.
    """
    session = spark.newSession()
    like = settings_of(Jvm.of(spark), spark._jsparkSession).to_dict()
    conf = session._jsparkSession.sessionState().conf()
    for key, value in {**like, **settings}.items():
        conf.setConfString(key, value)
    return session


def may_change_results(key: str) -> bool:
    """Returns whether a setting may change what an expression returns, apart from those that count by themselves.

    >>> may_change_results("spark.sql.legacy.timeParserPolicy"), may_change_results("spark.sql.shuffle.partitions")
    (True, False)
    """
    return key.startswith("spark.sql.") and not _SAME_RESULTS.match(key)


def _language_of_cases(jvm: Jvm) -> str:
    language = str(jvm.root.java.util.Locale.getDefault().getLanguage())
    return language if language in _OWN_CASES else ""
