{% snapshot kept_legacy %}
{{ config(unique_key='id', strategy='timestamp', updated_at='changed_at', invalidate_hard_deletes=true, tags=["kept"]) }}
select * from {{ ref("kept_source") }}
{% endsnapshot %}
