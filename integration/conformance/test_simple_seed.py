"""Seeds."""

from codecs import BOM_UTF8
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.adapter.simple_seed import seeds as csv_files
from dbt.tests.adapter.simple_seed.test_seed import (
    BaseBasicSeedTests,
    BaseSeedConfigFullRefreshOff,
    BaseSeedConfigFullRefreshOn,
    BaseSeedCustomSchema,
    BaseSeedParsing,
    BaseSeedSpecificFormats,
    BaseSeedWithEmptyDelimiter,
    BaseSeedWithUniqueDelimiter,
    BaseSeedWithWrongDelimiter,
    BaseSimpleSeedEnabledViaConfig,
    BaseSimpleSeedWithBOM,
    BaseTestEmptySeed,
)
from dbt.tests.adapter.simple_seed.test_seed_type_override import BaseSimpleSeedColumnOverride
from dbt.tests.util import run_dbt

# Spark's names of the types; dbt-spark reads whole numbers as bigint.
_TYPES = {"type: text": "type: string", "type: integer": "type: bigint", "timestamp without time zone": "timestamp"}


class _ViewsStay:
    """Spark drops no view with the table that it reads."""

    def _check_relation_end_state(self, run_result: Any, project: Any, exists: bool) -> None:
        super()._check_relation_end_state(run_result, project, True)  # type: ignore[misc] # of the base


@pytest.mark.slow
class TestBasicSeeds(_ViewsStay, BaseBasicSeedTests):
    pass


@pytest.mark.slow
class TestSeedConfigFullRefreshOn(_ViewsStay, BaseSeedConfigFullRefreshOn):
    pass


@pytest.mark.exhaustive
class TestSeedConfigFullRefreshOff(BaseSeedConfigFullRefreshOff):
    pass


@pytest.mark.exhaustive
class TestSeedCustomSchema(BaseSeedCustomSchema):
    pass


@pytest.mark.exhaustive
class TestSeedWithUniqueDelimiter(BaseSeedWithUniqueDelimiter):
    pass


@pytest.mark.exhaustive
class TestSeedWithWrongDelimiter(BaseSeedWithWrongDelimiter):
    pass


@pytest.mark.exhaustive
class TestSeedWithEmptyDelimiter(BaseSeedWithEmptyDelimiter):
    pass


@pytest.mark.exhaustive
class TestSimpleSeedEnabledViaConfig(BaseSimpleSeedEnabledViaConfig):
    pass


@pytest.mark.exhaustive
class TestSeedParsing(BaseSeedParsing):
    pass


@pytest.mark.exhaustive
class TestSimpleSeedWithBOM(BaseSimpleSeedWithBOM):
    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project: Any) -> None:  # the base's name
        # The package does not bring the file that the base copies; it is its own seed behind a byte order mark.
        project.run_sql(csv_files.seeds__expected_sql)
        seed = Path(project.project_root) / "seeds" / "seed_bom.csv"
        seed.write_bytes(BOM_UTF8 + csv_files.seed__actual_csv.encode())


@pytest.mark.exhaustive
class TestSeedSpecificFormats(BaseSeedSpecificFormats):
    @pytest.fixture(scope="class")
    def test_data_dir(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        # The base makes and removes this folder: not the one beside the tests.
        return tmp_path_factory.mktemp("seeds") / "data"

    @pytest.fixture(scope="class")
    def seeds(self, test_data_dir: Path) -> dict[str, str]:
        # Spark's metastore takes letters, digits and underscores for a name, so the seed with dots cannot be one.
        return {
            "big_seed.csv": self._make_big_seed(test_data_dir).read_text(),
            "seed_unicode.csv": csv_files.seed__unicode_csv,
        }

    def test_simple_seed(self, project: Any) -> None:
        assert len(run_dbt(["seed"])) == 2


@pytest.mark.exhaustive
class TestEmptySeed(BaseTestEmptySeed):
    pass


class TestSimpleSeedColumnOverride(BaseSimpleSeedColumnOverride):
    in_spark = _TYPES

    @staticmethod
    def seed_enabled_types() -> dict[str, str]:
        return {"seed_id": "string", "birthday": "date"}

    @staticmethod
    def seed_tricky_types() -> dict[str, str]:
        return {"seed_id_str": "string", "looks_like_a_bool": "string", "looks_like_a_date": "string"}
