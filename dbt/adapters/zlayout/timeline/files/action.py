"""Actions, states and operations: the kinds of work on a timeline and their progress."""

from __future__ import annotations

from enum import Enum


class Action(str, Enum):
    """What is done to the table, in Hudi's terms."""

    COMMIT = "commit"
    REPLACECOMMIT = "replacecommit"
    DELTACOMMIT = "deltacommit"
    COMPACTION = "compaction"
    ROLLBACK = "rollback"
    INDEXING = "indexing"


class State(str, Enum):
    """The progress of an action."""

    REQUESTED = "requested"
    INFLIGHT = "inflight"
    ABANDONED = "abandoned"
    SCHEDULED = "scheduled"  # a pending plan


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


# What moves rows to other files and leaves them as they are.
MOVES_ROWS = frozenset({Operation.CLUSTERING.value, Operation.COMPACTION.value, Operation.CONVERSION.value})
