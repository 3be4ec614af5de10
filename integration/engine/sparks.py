"""What of the suite runs on every Spark, and what on the newest alone where the suite runs on several."""

import os

import pytest

newest_spark = pytest.mark.skipif(
    os.environ.get("ZLAYOUT_ENGINE") == "sample",
    reason="Spark's version has no part in it; it runs on the newest, and here without ZLAYOUT_ENGINE=sample",
)
