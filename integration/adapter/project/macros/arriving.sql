{#- The rows of a run: keys of earlier rounds come again with other values, some in another partition. -#}
{% macro arriving(round=none) %}
  {%- set round = round or var('round') | int -%}
  {%- set low, high = {1: (0, 200), 2: (150, 260), 3: (100, 240)}[round] -%}
  select
    id,
    cast((id + {{ round // 3 }}) % 4 as int) as part,
    concat('round {{ round }}, ', id) as told,
    id * {{ round }} as amount,
    date_add(date'2024-01-01', {{ round }}) as seen
  from range({{ low }}, {{ high }})
  {%- if round > 1 %}
  where id % 4 < {{ round }}
  {%- endif %}
{% endmacro %}
