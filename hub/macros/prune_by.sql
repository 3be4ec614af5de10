{#- A condition on a column that is true for every value of a query, written as constants, which file statistics can use.
    The query runs while the model is compiled. The condition may let other values through: keep the join. -#}
{% macro prune_by(column, query, max_values=1000) %}
  {{ return(adapter.dispatch('prune_by', 'file_layout')(column, query, max_values)) }}
{% endmacro %}

{% macro default__prune_by(column, query, max_values) %}
  {%- if not execute or flags.EMPTY -%}
    {{ return('true') }}
  {%- endif -%}
  {%- set rows -%}
    select count(distinct pruned.v) as n, min(pruned.v) as low, max(pruned.v) as high from ({{ query }}) as pruned(v)
  {%- endset -%}
  {%- set count, low, high = run_query(rows).rows[0].values() -%}
  {%- if count == 0 -%}
    {{ return('false') }}
  {%- elif count > max_values -%}
    {%- set ends = file_layout.literals([low, high]) -%}
    {{ return('true' if ends is none else '(' ~ column ~ ' between ' ~ ends[0] ~ ' and ' ~ ends[1] ~ ')') }}
  {%- endif -%}
  {%- set distinct = run_query('select distinct pruned.v from (' ~ query ~ ') as pruned(v) where pruned.v is not null') -%}
  {%- set values = file_layout.literals(distinct.columns[0].values()) -%}
  {{ return('true' if values is none else column ~ ' in (' ~ values | join(', ') ~ ')') }}
{% endmacro %}

{#- dbt-zlayout cuts many values at their widest gaps, and knows more types. -#}
{% macro zlayout__prune_by(column, query, max_values) %}
  {{ return(zlayout_prune_by(column, query, max_values)) }}
{% endmacro %}

{#- The values as SQL. None if a text has a quote or a backslash, which databases read in different ways, or if a number
    has more digits than decimals have. -#}
{% macro literals(values) %}
  {%- set found = [] -%}
  {%- for value in values -%}
    {%- if value is string -%}
      {%- if "'" in value or '\\' in value -%}
        {{ return(none) }}
      {%- endif -%}
      {%- do found.append("'" ~ value ~ "'") -%}
    {%- elif value is boolean or value is float or value | string | lower in ('nan', 'infinity', '-infinity') -%}
      {%- do exceptions.raise_compiler_error('prune_by takes whole numbers, decimals, texts and dates, not ' ~ value) -%}
    {%- elif value is number -%}
      {%- set literal = value | string if value is integer else '{:f}'.format(value) -%}
      {%- if literal | length > 40 -%}
        {{ return(none) }}
      {%- endif -%}
      {%- do found.append(literal) -%}
    {%- elif value.isoformat is defined and value.hour is not defined -%}
      {%- do found.append("date '" ~ value.isoformat() ~ "'") -%}
    {%- else -%}
      {%- do exceptions.raise_compiler_error('prune_by takes whole numbers, decimals, texts and dates, not ' ~ value) -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(found) }}
{% endmacro %}
