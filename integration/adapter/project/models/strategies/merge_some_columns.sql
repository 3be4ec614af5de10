{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id', merge_update_columns=['told', 'AMOUNT'], tags=['strategies']) }}
{{ arriving() }}
