{{ config(enabled=var('past', false), materialized=var('reader', 'table'), zorder=['id'] if var('reader', 'table') == 'zordered_table' else none) }}
select * from {{ zlayout_at(ref('versions'), version=var('version', none), timestamp=var('timestamp', none)) }}
