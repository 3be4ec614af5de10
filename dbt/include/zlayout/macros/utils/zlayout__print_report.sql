{#- Prints what an operation reports, and then ends with its error, if there is one. -#}
{% macro zlayout__print_report(found) %}
  {% if found[0] %}{% do print(found[0]) %}{% endif %}
  {% if found[1] %}{% do exceptions.raise_compiler_error(found[1]) %}{% endif %}
{% endmacro %}
