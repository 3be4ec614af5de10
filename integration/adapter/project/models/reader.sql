{{ config(materialized='table') }}
select code, count(*) as n from {{ ref('clustered') }} where id between 100 and 199 group by code
