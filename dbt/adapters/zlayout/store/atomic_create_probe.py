"""Atomic-create probe: tests that a store refuses to create a file that already exists, as commits require."""

from __future__ import annotations

import threading
import uuid
from contextlib import suppress

from dbt.adapters.zlayout.errors import AlreadyExistsError, StoreError, UnsupportedError
from dbt.adapters.zlayout.store.local import SCRATCH_FOLDER
from dbt.adapters.zlayout.store.protocol import Store

_kept: set[str] = set()
_lock = threading.Lock()


def check_create_if_absent(store: Store) -> None:
    """Creates one file twice; the second attempt must fail and keep the first. Each process probes a root once.

    Local file systems are not probed: hard links never overwrite, and file systems without them report an error. A
    service behind a network may ignore the condition of a request and answer as if it had been met.

    Args:
        store: The store in which a table is about to be created.

    Raises:
        UnsupportedError: The second create succeeded; two writers could commit the same version.
        StoreError: The store cannot be written at all.
    """
    if store.local_path("") is not None or store.root_uri in _kept:
        return
    path = f"{SCRATCH_FOLDER}/.{uuid.uuid4().hex}.probe"
    try:
        store.create(path, b"first")
        try:
            store.create(path, b"second")
        except AlreadyExistsError:
            if store.read(path) == b"first":
                with _lock:
                    _kept.add(store.root_uri)
                return
    finally:
        with suppress(StoreError):
            store.delete([path])
    raise UnsupportedError(
        f"{store.root_uri}: this storage overwrites a file that should be created only if it is absent (it ignores "
        "the condition If-None-Match), so two writers could commit the same version and lose rows; set location_root "
        "to a storage that supports conditional puts (Amazon S3, MinIO, Google Cloud Storage, Azure Blob Storage), to "
        "HDFS or to a local file system"
    )
