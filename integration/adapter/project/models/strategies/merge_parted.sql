{{ config(materialized='zordered_table', incremental_strategy='merge', unique_key=['id'], partition_by='part', zorder=['amount'], tags=['strategies']) }}
{{ arriving() }}
