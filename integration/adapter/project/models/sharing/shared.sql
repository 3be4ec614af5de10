{{ config(enabled=var('sharing', false), materialized=var('kind', 'zordered_table'), zorder=['k'], publish=var('formats', none), publish_catalog=var('catalog', none)) }}
select id k, {{ var('column', "cast(id % 3 as string)") }} v from range({{ var('rows', 100) }})
