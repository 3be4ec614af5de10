"""Files of one table: reading, atomic writing and listing, local or in a cloud."""

from dbt.adapters.zlayout.store.opening import open_store
from dbt.adapters.zlayout.store.protocol import Store, StoredFile, StoredFiles
from dbt.adapters.zlayout.store.uri import qualified

__all__ = ["Store", "StoredFile", "StoredFiles", "open_store", "qualified"]
