{{ config(materialized='incremental', on_schema_change=var('policy', 'ignore'), tags=['mistakes']) }}
{% if is_incremental() %}
select id, array('x') as many, 'x' as one, named_struct('x', 1.5d) as nested from range(10)
{% else %}
select id, array(id) as many, id as one, named_struct('x', 1) as nested from range(10)
{% endif %}
