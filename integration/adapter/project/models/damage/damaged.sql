{{ config(materialized='incremental', incremental_strategy='append', retain_versions=1, retain_hours=0) }}
select id, concat('row ', id) as told from range({{ var('rows', 10) }})
