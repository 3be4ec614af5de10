{{ config(
    materialized='zordered_table', incremental_strategy='merge', unique_key=['id'], zorder=['id'], partition_by='part', table_type='merge_on_read',
    ordering='seen', compaction='deferred', compact_every=2,
) }}
{{ arriving() }}
