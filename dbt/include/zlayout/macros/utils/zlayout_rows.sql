{#- The rows that a generic test found, as a query. types has the type of each column by its name. -#}
{% macro zlayout_rows(rows, types) %}
  {%- set names = '`' ~ types | join('`, `') ~ '`' -%}
  select {{ names }} from values
  {%- for row in rows or [{}] %}
    ({% for name, type in types.items() -%}
      {%- set value = row.get(name) -%}
      cast({{ 'null' if value is none else adapter.string_literal(value) if type == 'string' else value }} as {{ type }}){{ ', ' if not loop.last }}
    {%- endfor %}){{ ',' if not loop.last }}
  {%- endfor %}
  as found ({{ names }}){{ ' where false' if not rows }}
{% endmacro %}
