{{ config(
    materialized='incremental', incremental_strategy='merge', unique_key='id', tags=['strategies'], source_alias='s', target_alias='t',
    incremental_predicates=['t.id > 120'], matched_condition='s.amount > t.amount + 300', not_matched_condition='s.id % 3 = 0'
) }}
{{ arriving() }}
