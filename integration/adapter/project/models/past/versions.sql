{{ config(enabled=var('past', false), materialized='zordered_table', zorder=['id'], retain_versions=var('retained', 50), retain_hours=0) }}
select id, {{ var('turn') }} as turn{{ ", 'x' as dropped" if var('turn') == 1 }} from range(100)
