{% snapshot kept_ignore %}
{{ config(unique_key='id', strategy='timestamp', updated_at='changed_at', tags=["kept"]) }}
select * from {{ ref("kept_source") }}
{% endsnapshot %}
