{{ config(materialized='zordered_table', zorder=['id'], persist_docs={'relation': true, 'columns': true}, tblproperties={'team': 'lake'}) }}
select id, id % 3 as `größe.x` from range(10)
