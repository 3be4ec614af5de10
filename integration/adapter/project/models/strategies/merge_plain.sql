{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id', zorder=['id'], target_file_size='1kb', tags=['strategies']) }}
{{ arriving() }}
