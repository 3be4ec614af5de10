{#- Fails for each cell of the index that contradicts the footers or, with data: true, the data. -#}
{% test zlayout_index_exact(model, data=false) %}
  {%- set wrong = adapter.verify_index(model, data) -%}
  {%- if wrong -%}
    select path, `column`, cell, stored, found from values
    {%- for row in wrong %}
      ({% for name in ('path', 'column', 'cell', 'stored', 'found') -%}
        {{ adapter.string_literal(row[name]) if row[name] is not none else 'cast(null as string)' }}{{ ', ' if not loop.last }}
      {%- endfor %}){{ ',' if not loop.last }}
    {%- endfor %}
    as wrong (path, `column`, cell, stored, found)
  {%- else -%}
    select cast(null as string) as path, cast(null as string) as `column`, cast(null as string) as cell, cast(null as string) as stored,
      cast(null as string) as found where false
  {%- endif -%}
{% endtest %}
