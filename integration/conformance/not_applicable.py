"""The base classes of dbt-tests-adapter that this adapter does not adopt, by module and name, each with the reason."""

_ABSTRACT = "abstract: its subclasses are adopted"
_GRANTS = "Spark's SQL has no GRANT outside of Hive's own authorization, and a local session has no users"
_MATERIALIZED_VIEWS = "Spark has no materialized views"
_JAVASCRIPT = "Spark has no functions in JavaScript"
_PYTHON_FUNCTIONS = "Spark's CREATE FUNCTION takes SQL or a class in a jar, no Python"
_AGGREGATES = "Spark's CREATE FUNCTION makes no aggregates in SQL"

NOT_APPLICABLE: dict[str, str] = {
    "caching.test_caching.BaseCachingTest": _ABSTRACT,
    "constraints.test_constraints.BaseConstraintsColumnsEqual": _ABSTRACT,
    "constraints.test_constraints.BaseContractSqlHeader": _ABSTRACT,
    "dbt_clone.test_dbt_clone.BaseClonePossible": (
        "wants tables that share files; a clone of a Parquet table is a view, for which BaseCloneNotPossible is adopted"
    ),
    "dbt_clone.test_dbt_clone.TestPostgresCloneNotPossible": "BaseCloneNotPossible, which is adopted, with Postgres' clean-up",
    "functions.test_js_udfs.BasicJSUDF": _JAVASCRIPT,
    "functions.test_js_udfs.JSUDFMultiLineBody": _JAVASCRIPT,
    "functions.test_js_udfs.JSUDFDeterministicVolatility": _JAVASCRIPT,
    "functions.test_js_udfs.JSUDFNonDeterministicVolatility": _JAVASCRIPT,
    "functions.test_js_udfs.JSUDFStableVolatilityWarns": _JAVASCRIPT,
    "functions.test_js_udfs.JSUDFDefaultArgSupport": _JAVASCRIPT,
    "functions.test_js_udfs.BasicJSAggregateUDF": _JAVASCRIPT,
    "functions.test_js_udfs.JSAggregateUDFVolatilityIgnored": _JAVASCRIPT,
    "functions.test_udafs.UDAFBase": _ABSTRACT,
    "functions.test_udafs.BasicPythonUDAF": _PYTHON_FUNCTIONS,
    "functions.test_udafs.BasicSQLUDAF": _AGGREGATES,
    "functions.test_udafs.PythonUDAFDefaultArgSupport": _PYTHON_FUNCTIONS,
    "functions.test_udfs.PythonUDFSupported": _PYTHON_FUNCTIONS,
    "functions.test_udfs.PythonUDFDefaultArgSupport": _PYTHON_FUNCTIONS,
    "functions.test_udfs.PythonUDFVolatilitySupport": _PYTHON_FUNCTIONS,
    "functions.test_udfs.PythonUDFWithPackagesSupported": _PYTHON_FUNCTIONS,
    "functions.test_udfs.CanFindScalarFunctionRelation": "Spark lists no functions among the relations of a schema",
    "grants.test_incremental_grants.BaseIncrementalGrants": _GRANTS,
    "grants.test_invalid_grants.BaseInvalidGrants": _GRANTS,
    "grants.test_model_grants.BaseModelGrants": _GRANTS,
    "grants.test_seed_grants.BaseSeedGrants": _GRANTS,
    "grants.test_snapshot_grants.BaseSnapshotGrants": _GRANTS,
    "materialized_view.basic.MaterializedViewBasic": _MATERIALIZED_VIEWS,
    "materialized_view.changes.MaterializedViewChanges": _MATERIALIZED_VIEWS,
    "materialized_view.changes.MaterializedViewChangesApplyMixin": _MATERIALIZED_VIEWS,
    "materialized_view.changes.MaterializedViewChangesContinueMixin": _MATERIALIZED_VIEWS,
    "materialized_view.changes.MaterializedViewChangesFailMixin": _MATERIALIZED_VIEWS,
    "utils.base_array_utils.BaseArrayUtils": _ABSTRACT,
    "utils.base_utils.BaseUtils": _ABSTRACT,
    "utils.data_types.base_data_type_macro.BaseDataTypeMacro": _ABSTRACT,
    "utils.test_current_timestamp.BaseCurrentTimestamp": _ABSTRACT,
    "utils.test_current_timestamp.BaseCurrentTimestampAware": "PySpark returns timestamps without a time zone: BaseCurrentTimestampNaive is adopted",
}
