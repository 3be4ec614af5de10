"""The contract lies beside these tests and is run by the integration suite too."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("store_contract")
