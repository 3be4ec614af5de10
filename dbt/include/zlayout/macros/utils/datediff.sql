{#- Counts how often a unit starts between two times. Weeks start on Sunday, as in dbt-spark, whose SQL for this is several pages long. -#}
{% macro zlayout__datediff(first_date, second_date, datepart) %}
  {%- set unit = datepart | lower -%}
  {%- if unit == 'day' -%}
    datediff(cast({{ second_date }} as date), cast({{ first_date }} as date))
  {%- elif unit in ('year', 'quarter', 'month', 'week', 'hour', 'minute', 'second', 'millisecond', 'microsecond') -%}
    timestampdiff({{ unit }}, {{ zlayout_unit_start(first_date, unit) }}, {{ zlayout_unit_start(second_date, unit) }})
  {%- else -%}
    {%- do exceptions.raise_compiler_error(
      "datediff: '" ~ datepart ~ "' is not a unit; use year, quarter, month, week, day, hour, minute, second, millisecond or microsecond") -%}
  {%- endif -%}
{% endmacro %}


{% macro zlayout_unit_start(time, unit) -%}
  date_trunc('{{ unit }}', cast({{ time }} as timestamp){{ ' + interval 1 day' if unit == 'week' }})
{%- endmacro %}
