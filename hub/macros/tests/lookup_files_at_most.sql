{#- Fails if a lookup of one value has to read more than `max` files, on average over the smallest value of each file. -#}
{% test lookup_files_at_most(model, column_name, max) %}
  {%- do file_layout.check_whole_table('lookup_files_at_most', model) %}
  with files as (
    select {{ file_layout.file_of_row('file_path') }} as path, min({{ column_name }}) as low, max({{ column_name }}) as high
    from {{ model }}
    where {{ column_name }} is not null
    group by {{ file_layout.file_of_row('file_path') }}
  ),
  lookups as (
    select a.path, count(*) as files_read
    from files a
    join files b on a.low between b.low and b.high
    group by a.path
  )
  select avg(files_read) as average_files_read, {{ max }} as at_most
  from lookups
  having avg(files_read) > {{ max }}
{% endtest %}
