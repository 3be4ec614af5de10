{#- Fails if the average depth of the files is above max. columns replace the clustering keys. -#}
{% test zlayout_depth_at_most(model, max, columns=none, column_name=none) %}
  {%- for row in adapter.depth_problems(model, max, column_name if columns is none else columns) -%}
    select {{ adapter.string_literal(row['columns']) }} as `columns`, cast({{ row['average_depth'] }} as double) as average_depth,
      cast({{ row['at_most'] }} as double) as at_most, {{ adapter.string_literal(row['what_to_do']) }} as what_to_do
  {%- else -%}
    select cast(null as string) as `columns`, cast(null as double) as average_depth, cast(null as double) as at_most,
      cast(null as string) as what_to_do where false
  {%- endfor -%}
{% endtest %}
