{{ config(materialized='zordered_table' if var('variant') == 'clustered' else 'incremental', file_format='parquet', zorder=['id'] if var('variant') == 'clustered' else none) }}
select id from range(10)
