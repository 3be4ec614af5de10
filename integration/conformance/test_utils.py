"""Macros that say the same in every SQL."""

import pytest
from dbt.tests.adapter.utils.data_types import test_type_float as type_float
from dbt.tests.adapter.utils.data_types import test_type_int as type_int
from dbt.tests.adapter.utils.data_types.test_type_bigint import BaseTypeBigInt
from dbt.tests.adapter.utils.data_types.test_type_boolean import BaseTypeBoolean
from dbt.tests.adapter.utils.data_types.test_type_float import BaseTypeFloat
from dbt.tests.adapter.utils.data_types.test_type_int import BaseTypeInt
from dbt.tests.adapter.utils.data_types.test_type_numeric import BaseTypeNumeric
from dbt.tests.adapter.utils.data_types.test_type_string import BaseTypeString
from dbt.tests.adapter.utils.data_types.test_type_timestamp import BaseTypeTimestamp
from dbt.tests.adapter.utils.test_any_value import BaseAnyValue
from dbt.tests.adapter.utils.test_array_append import BaseArrayAppend
from dbt.tests.adapter.utils.test_array_concat import BaseArrayConcat
from dbt.tests.adapter.utils.test_array_construct import BaseArrayConstruct
from dbt.tests.adapter.utils.test_bool_or import BaseBoolOr
from dbt.tests.adapter.utils.test_cast import BaseCast
from dbt.tests.adapter.utils.test_cast_bool_to_text import BaseCastBoolToText
from dbt.tests.adapter.utils.test_concat import BaseConcat
from dbt.tests.adapter.utils.test_current_timestamp import BaseCurrentTimestampNaive
from dbt.tests.adapter.utils.test_date import BaseDate
from dbt.tests.adapter.utils.test_date_spine import BaseDateSpine
from dbt.tests.adapter.utils.test_date_trunc import BaseDateTrunc
from dbt.tests.adapter.utils.test_dateadd import BaseDateAdd
from dbt.tests.adapter.utils.test_datediff import BaseDateDiff
from dbt.tests.adapter.utils.test_equals import BaseEquals
from dbt.tests.adapter.utils.test_escape_single_quotes import (
    BaseEscapeSingleQuotesBackslash,
    BaseEscapeSingleQuotesQuote,
)
from dbt.tests.adapter.utils.test_except import BaseExcept
from dbt.tests.adapter.utils.test_generate_series import BaseGenerateSeries
from dbt.tests.adapter.utils.test_get_intervals_between import BaseGetIntervalsBetween
from dbt.tests.adapter.utils.test_get_powers_of_two import BaseGetPowersOfTwo
from dbt.tests.adapter.utils.test_hash import BaseHash
from dbt.tests.adapter.utils.test_intersect import BaseIntersect
from dbt.tests.adapter.utils.test_last_day import BaseLastDay
from dbt.tests.adapter.utils.test_length import BaseLength
from dbt.tests.adapter.utils.test_listagg import BaseListagg
from dbt.tests.adapter.utils.test_null_compare import BaseMixedNullCompare, BaseNullCompare
from dbt.tests.adapter.utils.test_position import BasePosition
from dbt.tests.adapter.utils.test_replace import BaseReplace
from dbt.tests.adapter.utils.test_right import BaseRight
from dbt.tests.adapter.utils.test_safe_cast import BaseSafeCast
from dbt.tests.adapter.utils.test_source_freshness_custom_info import BaseCalculateFreshnessMethod
from dbt.tests.adapter.utils.test_split_part import BaseSplitPart
from dbt.tests.adapter.utils.test_string_literal import BaseStringLiteral
from dbt.tests.adapter.utils.test_timestamps import BaseCurrentTimestamps
from dbt.tests.adapter.utils.test_validate_sql import BaseValidateSqlMethod

# Spark reads no other text as a date.
_ISO_DATES = {"09/01/2023": "2023-09-01", "09/12/2023": "2023-09-12"}
_NO_ORDER = {"test_build_assert_equal": "dbt-spark's listagg leaves order_by_clause out, with a warning"}


@pytest.mark.exhaustive
class TestTypeBigInt(BaseTypeBigInt):
    pass


@pytest.mark.exhaustive
class TestTypeBoolean(BaseTypeBoolean):
    pass


@pytest.mark.exhaustive
class TestTypeFloat(BaseTypeFloat):
    # Spark loads a number with a fraction as double, which EXCEPT tells from float.
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        types = "seeds: [{name: expected, config: {column_types: {float_col: float}}}]"
        return {"expected.csv": type_float.seeds__expected_csv, "expected.yml": types}


@pytest.mark.exhaustive
class TestTypeInt(BaseTypeInt):
    # Spark loads a whole number as bigint.
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        types = "seeds: [{name: expected, config: {column_types: {int_col: int}}}]"
        return {"expected.csv": type_int.seeds__expected_csv, "expected.yml": types}


@pytest.mark.exhaustive
class TestTypeNumeric(BaseTypeNumeric):
    pass


@pytest.mark.exhaustive
class TestTypeString(BaseTypeString):
    pass


@pytest.mark.exhaustive
class TestTypeTimestamp(BaseTypeTimestamp):
    pass


@pytest.mark.exhaustive
class TestAnyValue(BaseAnyValue):
    pass


@pytest.mark.exhaustive
class TestArrayAppend(BaseArrayAppend):
    pass


@pytest.mark.exhaustive
class TestArrayConcat(BaseArrayConcat):
    pass


@pytest.mark.exhaustive
class TestArrayConstruct(BaseArrayConstruct):
    pass


@pytest.mark.exhaustive
class TestBoolOr(BaseBoolOr):
    pass


@pytest.mark.exhaustive
class TestCast(BaseCast):
    pass


@pytest.mark.exhaustive
class TestCastBoolToText(BaseCastBoolToText):
    pass


class TestConcat(BaseConcat):
    pass


@pytest.mark.exhaustive
class TestCurrentTimestampNaive(BaseCurrentTimestampNaive):
    pass


@pytest.mark.exhaustive
class TestDate(BaseDate):
    pass


@pytest.mark.exhaustive
class TestDateSpine(BaseDateSpine):
    pass


class TestDateTrunc(BaseDateTrunc):
    pass


@pytest.mark.exhaustive
class TestDateAdd(BaseDateAdd):
    pass


@pytest.mark.exhaustive
class TestDateDiff(BaseDateDiff):
    pass


@pytest.mark.exhaustive
class TestEquals(BaseEquals):
    pass


@pytest.mark.exhaustive
class TestEscapeSingleQuotesBackslash(BaseEscapeSingleQuotesBackslash):
    pass


@pytest.mark.exhaustive
class TestEscapeSingleQuotesQuote(BaseEscapeSingleQuotesQuote):
    pass


@pytest.mark.exhaustive
class TestExcept(BaseExcept):
    pass


@pytest.mark.exhaustive
class TestGenerateSeries(BaseGenerateSeries):
    pass


@pytest.mark.exhaustive
class TestGetIntervalsBetween(BaseGetIntervalsBetween):
    in_spark = _ISO_DATES


@pytest.mark.exhaustive
class TestGetPowersOfTwo(BaseGetPowersOfTwo):
    pass


@pytest.mark.exhaustive
class TestHash(BaseHash):
    pass


@pytest.mark.exhaustive
class TestIntersect(BaseIntersect):
    pass


@pytest.mark.exhaustive
class TestLastDay(BaseLastDay):
    pass


@pytest.mark.exhaustive
class TestLength(BaseLength):
    pass


@pytest.mark.exhaustive
class TestListagg(BaseListagg):
    cannot = _NO_ORDER


@pytest.mark.exhaustive
class TestMixedNullCompare(BaseMixedNullCompare):
    pass


@pytest.mark.exhaustive
class TestNullCompare(BaseNullCompare):
    pass


@pytest.mark.exhaustive
class TestPosition(BasePosition):
    pass


@pytest.mark.exhaustive
class TestReplace(BaseReplace):
    pass


@pytest.mark.exhaustive
class TestRight(BaseRight):
    pass


@pytest.mark.exhaustive
class TestSafeCast(BaseSafeCast):
    pass


@pytest.mark.exhaustive
class TestCalculateFreshnessMethod(BaseCalculateFreshnessMethod):
    pass


@pytest.mark.exhaustive
class TestSplitPart(BaseSplitPart):
    pass


@pytest.mark.exhaustive
class TestStringLiteral(BaseStringLiteral):
    pass


class TestCurrentTimestamps(BaseCurrentTimestamps):
    @pytest.fixture(scope="class")
    def expected_schema(self) -> dict[str, str]:
        return dict.fromkeys(
            ("current_timestamp", "current_timestamp_in_utc_backcompat", "current_timestamp_backcompat"), "timestamp"
        )

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        # Spark's function.
        return """
        select current_timestamp() as current_timestamp,
               current_timestamp::timestamp as current_timestamp_in_utc_backcompat,
               current_timestamp::timestamp as current_timestamp_backcompat
        """


@pytest.mark.exhaustive
class TestValidateSqlMethod(BaseValidateSqlMethod):
    pass
