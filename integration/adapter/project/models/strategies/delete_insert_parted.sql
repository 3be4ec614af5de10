{{ config(materialized='zordered_table', incremental_strategy='delete+insert', unique_key=['id', 'seen'], partition_by='part', zorder='id', tags=['strategies']) }}
{{ arriving() }}
