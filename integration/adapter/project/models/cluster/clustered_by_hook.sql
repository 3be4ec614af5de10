{{ config(
    materialized='incremental', incremental_strategy='append', post_hook="{{ zlayout_cluster(this, min_input_files=3) }}",
) }}
select id from range({{ var('from', 0) }}, {{ var('to', 10) }})
