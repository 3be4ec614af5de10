{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id', on_schema_change='ignore', zorder=['id'], tags=['columns']) }}
{{ other_columns() }}
