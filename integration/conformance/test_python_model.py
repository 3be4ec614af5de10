"""Models in Python."""

from typing import Any

import pytest
from dbt.tests.adapter.python_model import test_spark as pyspark_models
from dbt.tests.adapter.python_model.test_python_model import (
    BasePythonEmptyTests,
    BasePythonIncrementalTests,
    BasePythonMetaGetTests,
    BasePythonModelTests,
    BasePythonSampleTests,
)
from dbt.tests.adapter.python_model.test_spark import BasePySparkTests
from dbt.tests.util import run_dbt


class TestPythonModel(BasePythonModelTests):
    pass


class TestPythonIncremental(BasePythonIncrementalTests):
    pass


@pytest.mark.exhaustive
class TestPythonMetaGet(BasePythonMetaGetTests):
    pass


@pytest.mark.exhaustive
class TestPythonEmpty(BasePythonEmptyTests):
    pass


@pytest.mark.exhaustive
class TestPythonSample(BasePythonSampleTests):
    pass


@pytest.mark.exhaustive
class TestPySpark(BasePySparkTests):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        # Koalas is pyspark.pandas since Spark 3.2, which is among them.
        return {
            "pandas_df.py": pyspark_models.PANDAS_MODEL,
            "pyspark_df.py": pyspark_models.PYSPARK_MODEL,
            "pandas_on_spark_df.py": pyspark_models.PANDAS_ON_SPARK_MODEL,
        }

    def test_different_dataframes(self, project: Any) -> None:
        assert len(run_dbt(["run"])) == 3
