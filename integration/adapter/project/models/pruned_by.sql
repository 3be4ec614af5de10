{{ config(enabled=var('pruned_by', false), materialized='table') }}
select id, code from {{ ref('clustered') }} as c
where {{ zlayout_prune_by('c.id', 'select id * 100 as wanted from range(' ~ var('wanted', 5) ~ ');', max_values=var('most', 1000), max_ranges=2) }}
