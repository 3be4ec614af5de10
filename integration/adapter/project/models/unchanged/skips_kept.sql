{{ config(materialized=var('kept_as', 'incremental'), skip_unchanged=true) }}
select * from {{ ref('ups') }}
