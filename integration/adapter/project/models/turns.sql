{{ config(materialized={'first': 'view', 'plain': 'table'}.get(var('variant'), 'zordered_table'), zorder=['id']) }}
select id, {{ "raise_error('no luck today')" if var('variant') == 'failing' else "'" ~ var('variant') ~ "'" }} as made_by from range(10)
