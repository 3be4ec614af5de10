"""``ZTable``: the Python interface of a table."""

from dbt.adapters.zlayout.table.ztable import ZTable, explain_query

__all__ = ["ZTable", "explain_query"]
