{#- Fails if more than `max` files of a table are smaller than `bytes`. -#}
{% test small_files_at_most(model, max, bytes=33554432) %}
  {%- do file_layout.check_whole_table('small_files_at_most', model) %}
  with files as (
    select distinct {{ file_layout.file_of_row('file_path') }} as path, {{ file_layout.file_of_row('file_size') }} as size
    from {{ model }}
  )
  select count(*) as small_files, {{ max }} as at_most
  from files
  where size < {{ bytes }}
  having count(*) > {{ max }}
{% endtest %}
