{% snapshot kept_wider %}
{{ config(strategy='check', unique_key='id', check_cols='all') }}
select 1 as id, {{ var('wider', '5') }} as v{{ var('more', '') }}
{% endsnapshot %}
