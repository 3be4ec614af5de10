{% macro var(name) %}
  {#- A variable of this command; conftest.py hands it over in the environment. dbt then parses the files anew that read
      it: for another --vars it parses everything anew, which takes seconds. -#}
  {%- set given = env_var('ADAPTER_SUITE_' ~ name, '') -%}
  {{ return(fromjson(given) if given else builtins.var(name, *varargs)) }}
{% endmacro %}
