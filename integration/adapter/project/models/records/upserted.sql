{%- set kind = var('kind', 'merge_on_read') -%}
{{ config(
    materialized='incremental', incremental_strategy=var('strategy', none), unique_key='id', zorder=['id'], table_type=kind,
    compaction='off' if kind == 'merge_on_read' else none, persist_docs={'relation': true, 'columns': true}, tblproperties={'team': 'lake'},
) }}
select *, {{ is_incremental() }} as came_later from ({{ arriving() }})
