{#- This adapter writes Parquet, the default format. dbt-spark writes the other formats. -#}
{% macro zlayout_writes_format() %}
  {%- set parquet = (config.get('file_format') or 'parquet') | lower == 'parquet' -%}
  {%- if not parquet and model.language == 'python' -%}
    {% do exceptions.raise_compiler_error(
      "file_format: Python models are written as parquet, not as " ~ config.get('file_format') ~ "; leave the key out") %}
  {%- endif -%}
  {%- if not parquet -%}
    {% do adapter.check_settings_without_files(model) %}
  {%- endif -%}
  {{ return(parquet) }}
{% endmacro %}


{#- This adapter cannot write rows to a table of another format. -#}
{% macro zlayout_own(relation) %}
  {%- if not relation.is_plain_table -%}
    {% do exceptions.raise_compiler_error(
      relation ~ " is a table of another format; run once with --full-refresh to replace it with a table of this adapter") %}
  {%- endif -%}
  {{ return(relation) }}
{% endmacro %}


{#- Selects the columns of an enforced contract, in its order. A query that differs from the contract fails here. -#}
{% macro zlayout_code_under_contract() %}
  {%- if config.get('contract').enforced and model.language == 'sql' -%}
    {{ get_assert_columns_equivalent(compiled_code) }}
    {{ get_select_subquery(compiled_code) }}
  {%- else -%}
    {{ compiled_code }}
  {%- endif -%}
{% endmacro %}


{#- Spark runs one statement at a time, so the header runs first. -#}
{% macro zlayout_run_header() %}
  {%- set header = config.get('sql_header') -%}
  {%- if header and header | trim -%}
    {% call statement('sql_header') %}{{ header }}{% endcall %}
  {%- endif -%}
{% endmacro %}


{% macro zlayout__get_empty_subquery_sql(select_sql, select_sql_header=none) %}
  select * from (
    {{ select_sql }}
  ) as dbt_sbq
  where false
  limit 0
{% endmacro %}
