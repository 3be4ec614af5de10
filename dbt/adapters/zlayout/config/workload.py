"""A workload: the conditions that queries put on one table, each with a weight."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dbt.adapters.zlayout.config.scalars import as_number
from dbt.adapters.zlayout.errors import ConfigError

KEY = "workload"
GIVEN = "given"
# Sums of weights must stay numbers.
_GREATEST = 1e15
_EXAMPLE = '"day >= \'2024-01-01\'" or ["customer_id = 7", 10]'


@dataclass(frozen=True)
class WeightedCondition:
    """A condition and how often queries have it.

    Attributes:
        sql: The condition, as in a WHERE clause. 'true' for queries that read the whole table.
        weight: Its share of the workload in relation to other weights, above 0, at most 1e15 as given.
        source: Where the condition comes from: 'given', the name of a node, or 'scan log'.
        joined: Partition columns by which joins of the query skip partitions. The condition says which values.
        expressions: Expressions whose statistics would let further parts skip files, which the condition leaves out.
    """

    sql: str
    weight: float = 1.0
    source: str = GIVEN
    joined: tuple[str, ...] = ()
    expressions: tuple[str, ...] = ()


def parse_workload(given: object, subject: str = "", key: str = KEY) -> tuple[WeightedCondition, ...]:
    """Reads a workload.

    Args:
        given: Conditions as SQL text, pairs of a condition and its weight, or a mapping from conditions to weights. One
            text is one condition.
        subject: Whose workload this is, for the first line of the error.
        key: The name of the argument, for the other lines.

    Returns:
        The conditions in their order, each text once: weights of the same text are added.

    Raises:
        ConfigError: With one sentence for each entry that is wrong.

    >>> [(each.sql, each.weight) for each in parse_workload(["a = 1", ("b > 2", 3), "a = 1"])]
    [('a = 1', 2.0), ('b > 2', 3.0)]
    """
    problems: list[str] = []
    found = read_workload(key, given, problems)
    if problems:
        raise ConfigError(problems, subject)
    return found or ()


def read_workload(key: str, given: object, problems: list[str]) -> tuple[WeightedCondition, ...] | None:
    """Reads a workload as `parse_workload` does, but adds the sentences to ``problems``."""
    before = len(problems)
    entries: Iterable[object]
    if isinstance(given, str | WeightedCondition):
        entries = [given]
    elif isinstance(given, dict):
        entries = list(given.items())
    elif isinstance(given, Sequence):
        entries = given
    else:
        problems.append(f"{key}: {given!r} is not a list of conditions, such as [{_EXAMPLE}]")
        return None
    read = [_condition(each, key, problems) for each in entries]
    if not read:
        problems.append(f"{key}: the list is empty; give conditions, such as {_EXAMPLE}")
    if len(problems) > before:
        return None
    return merged(each for each in read if each is not None)


def merged(conditions: Iterable[WeightedCondition]) -> tuple[WeightedCondition, ...]:
    """Returns each condition once, with the sum of its weights and its first source."""
    found: dict[tuple[str, ...], WeightedCondition] = {}
    for each in conditions:
        key = (each.sql, *each.joined, "", *each.expressions)
        before = found.get(key)
        found[key] = each if before is None else replace(before, weight=before.weight + each.weight)
    return tuple(found.values())


def heaviest(conditions: Iterable[WeightedCondition], most: int) -> list[WeightedCondition]:
    """Returns the conditions of the greatest weights, at most ``most``."""
    return sorted(conditions, key=lambda each: (-each.weight, each.sql))[:most]


def _condition(entry: object, key: str, problems: list[str]) -> WeightedCondition | None:
    if isinstance(entry, WeightedCondition):
        return entry
    text, weight = (entry, 1.0) if isinstance(entry, str) else _pair(entry)
    if not isinstance(text, str) or not text.strip():
        problems.append(f"{key}: {entry!r} is not a condition; write {_EXAMPLE}")
        return None
    number = as_number(weight)
    if not 0 < number <= _GREATEST:
        problems.append(f"{key}: the weight {weight!r} of {text!r} is not a number above 0, at most {_GREATEST:g}")
        return None
    return WeightedCondition(text.strip(), number)


def _pair(entry: object) -> tuple[object, object]:
    if isinstance(entry, list | tuple) and len(entry) == 2:
        return entry[0], entry[1]
    return None, None
