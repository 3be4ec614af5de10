{{ config(materialized='zordered_table', zorder=['id', 'code'], target_file_size='16kb', tags=['layout']) }}
{%- if var('variant') == 'changed' %}
select cast(id as string) as id, id % 97 as code, 'new' as added from range(20000)
{%- elif var('variant') == 'failing' %}
select id, id * (case when id = 77 then raise_error('no luck today') else 1 end) as code, 'x' as dropped from range(20000)
{%- else %}
select id, id % 97 as code, concat('payload ', id) as dropped from range(20000)
{%- endif %}
