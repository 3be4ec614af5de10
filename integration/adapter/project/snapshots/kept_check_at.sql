{% snapshot kept_check_at %}
{{ config(unique_key='id', strategy='check', check_cols=['word'], updated_at='changed_at', tags=["kept"]) }}
select * from {{ ref("kept_source") }}
{% endsnapshot %}
