{% snapshot kept_invalidate %}
{{ config(unique_key='id', strategy='timestamp', updated_at='changed_at', hard_deletes='invalidate', zorder=['id'], dbt_valid_to_current="to_timestamp('9999-12-31')", tags=["kept"]) }}
select * from {{ ref("kept_source") }}
{% endsnapshot %}
