{% snapshot kept_new_record %}
{{ config(unique_key=['id'], strategy='check', check_cols='all', hard_deletes='new_record', tags=["kept"]) }}
select * from {{ ref("kept_source") }}
{% endsnapshot %}
