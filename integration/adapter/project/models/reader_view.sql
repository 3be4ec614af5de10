{{ config(materialized='view') }}
select * from {{ ref('clustered') }} where code = 5
