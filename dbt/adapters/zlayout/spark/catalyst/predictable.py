"""What makes SQL give other values later or in another session, although Spark calls it deterministic."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

from dbt.adapters.zlayout.spark.jvm.scala import Jvm

# A literal, a quoted name or the start of a hint, which stay as they are; or comments and white space, as Spark's lexer
# has them: a backslash at the end of the line continues a comment, and a carriage return ends it.
PARTS = re.compile(
    r"""((?<!\w)[rR]'[^']*'|(?<!\w)[rR]"[^"]*"|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|/\*\+)"""
    r"""|(?:--(?:\\\n|[^\r\n])*|/\*(?!\+).*?\*/|\s+)+""",
    re.DOTALL,
)
# Spark reads the current time for such a text. The parser does in typed literals, so that a plan does not show it.
_CURRENT_TIME = re.compile(
    r"""[rR]?(['"])\s*(?:now|(?:today|tomorrow|yesterday)(?![a-z])\s*\S*?)\s*\1""", re.IGNORECASE
)
# A typed literal with an escape may be such a text as well.
_ESCAPED_TIME = re.compile(r"""\b(?:date|timestamp(?:_[ln]tz)?)\s*(['"])(?:(?!\1)[^\\])*\\""", re.IGNORECASE)
# Words such as `in` are found as well; no function has their names.
_CALL = re.compile(r"([\w`.]+)\s*\(")
# Nodes for functions that users define in SQL. Spark has no tree pattern for them in every version.
SQL_FUNCTION = r"SQL(?:Function|TableFunction|ScalarFunction)\w*"
# Nodes that run code of users: functions of Hive, Scala, Java and Python, and those of other catalogs.
CODE_OF_USERS = rf".*UDF.*|.*UDAF.*|.*Reflection.*|ApplyFunctionExpression|{SQL_FUNCTION}"
# Spark's rules that put casts in place of functions such as to_date, and the current time in place of such casts.
_OPTIMIZER = "org.apache.spark.sql.catalyst.optimizer"
_RULES_OF_TIMES = ("ReplaceExpressions", "SpecialDatetimeValues")


def hidden_inputs(texts: Iterable[str], functions_of_users: Callable[[], Collection[str]]) -> list[str]:
    """Returns what the values of SQL depend on in addition to rows, as far as the text shows it, a sentence each.

    Args:
        functions_of_users: Gives the names of functions that are not Spark's, without a schema. It is called only if
            the SQL calls functions.

    >>> hidden_inputs(["concat(name, '${suffix}')"], set)
    ['its text has ${…}, which Spark replaces']
    """
    texts = list(texts)
    found = ["its text has ${…}, which Spark replaces"] if any("${" in text for text in texts) else []
    if literal := next(filter(None, map(current_time_literal, texts)), None):
        found.append(f"it has the literal {literal}, which Spark may take for the current time")
    if called := set[str]().union(*map(called_functions, texts)):
        own = functions_of_users()
        # Spark's own functions have no schema.
        names = sorted(each for each in called if "." in each.strip(".") or each in own)
        found += [f"it calls {name}, which is not a function of Spark" for name in names]
    return found


def current_time_literal(text: str) -> str | None:
    """Returns a literal that Spark may take for the current time.

    >>> current_time_literal("day > date'today' - 7")
    "'today'"
    """
    literals = [part[1] for part in PARTS.finditer(text) if part[1]]
    plain = next(filter(_CURRENT_TIME.fullmatch, literals), None)
    escaped = _ESCAPED_TIME.search(PARTS.sub(lambda part: part[1] or " ", text)) if plain is None else None
    return plain if escaped is None else f"{escaped[0]}…"


def called_functions(text: str) -> set[str]:
    """Returns the names of the functions that SQL calls, in lower case, and some other words.

    >>> called_functions("lower(`db`.norm(name))") == {"lower", "db.norm"}
    True
    """
    code = PARTS.sub(lambda part: " " if part[1] is None or part[1][0] != "`" else part[1], text)
    return {name.replace("`", "").lower() for name in _CALL.findall(code)}


def casts_to_the_current_time(jvm: Jvm, plan: Any) -> bool:
    """Returns whether an analyzed plan (Py4J object) casts a text such as 'today' to a date or timestamp."""
    replaced, with_times = (jvm.companion(f"{_OPTIMIZER}.{rule}") for rule in _RULES_OF_TIMES)
    casts = replaced.apply(plan)
    return not with_times.apply(casts).fastEquals(casts)
