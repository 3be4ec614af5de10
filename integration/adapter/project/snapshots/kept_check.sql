{% snapshot kept_check %}
{{ config(unique_key='id', strategy='check', check_cols=['word'], snapshot_meta_column_names={'dbt_valid_to': 'until', 'dbt_valid_from': 'since', 'dbt_scd_id': 'state_id'}, tags=["kept"]) }}
select * from {{ ref("kept_source") }}
{% endsnapshot %}
