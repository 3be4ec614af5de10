{{ config(enabled=var('wrong'), materialized='incremental', incremental_strategy='upsert', unique_key="coalesce(id, 0)", matched_conditon='true') }}
{{ arriving() }}
