"""The plugin that dbt loads for ``type: zlayout``."""

from __future__ import annotations

from dbt.adapters.base.plugin import AdapterPlugin

from dbt.adapters.zlayout.adapter.session.credentials import ZlayoutCredentials
from dbt.adapters.zlayout.impl import ZlayoutAdapter
from dbt.include.zlayout import PACKAGE_PATH

Plugin = AdapterPlugin(
    adapter=ZlayoutAdapter,  # type: ignore[arg-type] # dbt's protocol is looser than any adapter, its own too
    credentials=ZlayoutCredentials,
    include_path=PACKAGE_PATH,
    dependencies=["spark"],
)
