{{ config(
    materialized='zordered_table', zorder=['id'], partition_by=['part'], post_hook="{{ zlayout_cluster(ref('moves')) }}",
) }}
select id, part from {{ ref('moves') }}
