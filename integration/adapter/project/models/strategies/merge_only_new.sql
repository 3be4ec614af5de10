{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id', skip_matched_step=true, tags=['strategies']) }}
{{ arriving() }}
