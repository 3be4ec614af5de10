{{ config(
    materialized='incremental', unique_key='k', table_type='merge_on_read', ordering='o', deleted_when="op = 'D'",
    partition_by='p', compaction='off'
) }}
select k, o, op, v, p from main.feed_events where batch = {{ var('batch', 1) }}
