{{ config(materialized='view') }}
select id, kind from {{ ref('ups') }} where kind < {{ var('most', 3) }}
