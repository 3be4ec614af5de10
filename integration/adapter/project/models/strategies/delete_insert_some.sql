{{ config(materialized='incremental', incremental_strategy='delete+insert', unique_key='id', incremental_predicates=['amount < 180'], tags=['strategies']) }}
{{ arriving() }}
