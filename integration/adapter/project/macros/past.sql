{% macro count_at(model, version) %}
  {% set schema = target.schema %}
  {% do print(run_query("select count(*), max(turn) from " ~ zlayout_at(schema ~ '.' ~ model, version=version)).rows[0] | join(' ')) %}
{% endmacro %}
