{%- set kind = var('kind', 'merge_on_read') -%}
{#- No merge of logs pays by this ratio: what compacts, compacts by hand. -#}
{%- set ratio = 1000 if kind == 'merge_on_read' else none -%}
{{ config(
    materialized='incremental', incremental_strategy=var('strategy', none), unique_key='id', zorder=['id'], table_type=kind,
    compaction='off' if kind == 'merge_on_read' else none, compaction_min_log_ratio=ratio,
    persist_docs={'relation': true, 'columns': true}, tblproperties={'team': 'lake'},
) }}
select *, {{ is_incremental() }} as came_later from ({{ arriving() }})
