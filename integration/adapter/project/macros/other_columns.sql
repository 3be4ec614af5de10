{#- `columns`: same, more (one is new), other (one is gone, one is new, one is wider). -#}
{% macro other_columns() %}
  {%- set columns = var('columns', 'same') -%}
  select
    id,
    cast(id as {{ 'bigint' if columns == 'other' else 'int' }}) as n,
    {%- if columns != 'other' %}
    concat('then ', id) as gone,
    {%- endif %}
    {%- if columns != 'same' %}
    concat('now ', id) as came,
    {%- endif %}
    '{{ columns }}' as made_by
  from range({{ 0 if columns == 'same' else 5 }}, {{ 10 if columns == 'same' else 15 }})
{% endmacro %}
