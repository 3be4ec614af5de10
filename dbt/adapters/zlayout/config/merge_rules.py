"""Merge rules: what a merge does with rows that match and rows that do not."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.zlayout.config import settings

SOURCE_ALIAS = settings.SOURCE_ALIAS.default_value
TARGET_ALIAS = settings.TARGET_ALIAS.default_value


@dataclass(frozen=True)
class MergeRules:
    """What a merge does with rows that match and rows that do not; conditions are SQL over the two aliases.

    Attributes:
        unique_key: Columns whose equality makes rows match; null equals nothing. Empty if no key is needed.
        update_columns: Columns that a match updates; None for all.
        exclude_columns: Columns that a match does not update.
        predicates: Additional match conditions.
        matched_condition: Selects the matches to update; None for all.
        not_matched_condition: Selects the unmatched rows to insert; None for all.
        skip_matched_step: Updates nothing.
        skip_not_matched_step: Inserts nothing.
        deleted_when: Selects the incoming rows that are deletes, SQL over their columns; null means not a delete. None
            if no row is a delete.
        source_alias: Name of the incoming rows in conditions.
        target_alias: Name of the table in conditions.
    """

    unique_key: tuple[str, ...] = ()
    update_columns: tuple[str, ...] | None = None
    exclude_columns: tuple[str, ...] = ()
    predicates: tuple[str, ...] = ()
    matched_condition: str | None = None
    not_matched_condition: str | None = None
    skip_matched_step: bool = False
    skip_not_matched_step: bool = False
    deleted_when: str | None = None
    source_alias: str = SOURCE_ALIAS
    target_alias: str = TARGET_ALIAS

    @property
    def unconditional(self) -> bool:
        """Whether every incoming row updates the rows that it matches, or is inserted."""
        conditions = (self.matched_condition, self.not_matched_condition)
        return not (self.predicates or any(conditions) or self.skip_matched_step or self.skip_not_matched_step)

    def delete_problems(self) -> list[str]:
        """Returns a sentence for each rule that makes deletes impossible."""
        if self.deleted_when is None:
            return []
        found = []
        if not self.unique_key:
            found.append("deleted_when: a delete finds its row by the key; set unique_key")
        if self.skip_matched_step:
            found.append("deleted_when: skip_matched_step leaves matching rows unchanged; remove one of the two")
        return found
