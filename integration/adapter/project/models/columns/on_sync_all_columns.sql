{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id', on_schema_change='sync_all_columns', zorder=['id'], tags=['columns']) }}
{{ other_columns() }}
