{{ config(materialized='zordered_table', incremental_strategy='insert_overwrite', partition_overwrite='static', partition_by=['part'], zorder=['id'], tags=['strategies']) }}
{{ arriving() }}
