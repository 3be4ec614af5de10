{#- Fails if a predicate skips less than this percentage of the files. -#}
{% test zlayout_prunes_at_least(model, predicate, percent) %}
  {%- for row in adapter.pruning_problems(model, predicate, percent) -%}
    select {{ adapter.string_literal(row['predicate']) }} as predicate, cast({{ row['skipped_percent'] }} as double) as skipped_percent,
      cast({{ row['at_least'] }} as double) as at_least, cast({{ row['kept_files'] }} as bigint) as kept_files,
      cast({{ row['total_files'] }} as bigint) as total_files, {{ adapter.string_literal(row['what_to_do']) }} as what_to_do
  {%- else -%}
    select cast(null as string) as predicate, cast(null as double) as skipped_percent, cast(null as double) as at_least,
      cast(null as bigint) as kept_files, cast(null as bigint) as total_files, cast(null as string) as what_to_do where false
  {%- endfor -%}
{% endtest %}
