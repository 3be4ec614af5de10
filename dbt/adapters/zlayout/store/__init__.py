"""The store of one table's files: reading, atomic writing and listing, locally, in a cloud or on Hadoop."""

from dbt.adapters.zlayout.store.opening import check_create_if_absent, check_place, open_store
from dbt.adapters.zlayout.store.protocol import Store, StoredFile, StoredFiles
from dbt.adapters.zlayout.store.uri import qualified

__all__ = [
    "Store",
    "StoredFile",
    "StoredFiles",
    "check_create_if_absent",
    "check_place",
    "open_store",
    "qualified",
]
