"""The kinds of work on a timeline, and how far one has come."""

from __future__ import annotations

from enum import Enum


class Action(str, Enum):
    """What is done to the table, as Hudi names it."""

    COMMIT = "commit"
    REPLACECOMMIT = "replacecommit"
    DELTACOMMIT = "deltacommit"
    COMPACTION = "compaction"
    ROLLBACK = "rollback"
    INDEXING = "indexing"


class State(str, Enum):
    """How far an action has come."""

    REQUESTED = "requested"
    INFLIGHT = "inflight"
    ABANDONED = "abandoned"
    SCHEDULED = "scheduled"  # a plan that no transaction works on yet


class Operation(str, Enum):
    """What the user asked for; several operations share an action."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    INSERT_OVERWRITE = "insert_overwrite"
    MERGE = "merge"
    DELETE = "delete"
    CLUSTERING = "clustering"
    COMPACTION = "compaction"
    ADOPT = "adopt"
    ROLLBACK = "rollback"
    INDEXING = "indexing"
    RECOVERY = "recovery"
    CONVERSION = "conversion"
