{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id', deleted_when=var('gone', none), meta={'zlayout': {'skip_unchanged': true}}) }}
select id, kind from {{ ref('ups') }}
{% if is_incremental() %}where id > (select max(id) from {{ this }}){% endif %}
