{#- Round 2: key 1 changes, key 2 goes, key 4 comes. Round 3: key 2 is back, key 3 goes, a column comes. -#}
{{ config(materialized='table', tags=['kept']) }}
{%- set round = var('round') | int %}
select id, word, cast(concat('2024-01-0', changed) as timestamp) as changed_at {% if round == 3 %}, upper(word) as loud {% endif %}
from values
  {%- if round == 1 %} (1, 'a', 1), (2, 'b', 1), (3, 'c', 1)
  {%- elif round == 2 %} (1, 'A', 2), (3, 'c', 1), (4, 'd', 2)
  {%- else %} (1, 'A', 2), (2, 'b', 3), (4, 'e', 3)
  {%- endif %} as t (id, word, changed)
