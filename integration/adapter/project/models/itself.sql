{{ config(materialized='zordered_table', zorder=['run']) }}
{% set old = load_relation(this) %}
{% if old %}select run from {{ this }} union all select max(run) + 1 from {{ this }}{% else %}select 1 as run{% endif %}
