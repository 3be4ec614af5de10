{#- Takes its time when its table is there already, so that another writer can be first. -#}
{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }}
select id, 'dbt' as made_by {% if is_incremental() %}, reflect('java.lang.Thread', 'sleep', 2000L) is null as slept {% else %}, false as slept {% endif %}
from range(3)
