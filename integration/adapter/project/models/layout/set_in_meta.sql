{{ config(materialized='zordered_table', meta={'owner': 'us', 'zlayout': {'zorder': ['id'], 'target_file_size': '16kb'}}) }}
select id, concat('payload ', id) as payload from range(20000)
