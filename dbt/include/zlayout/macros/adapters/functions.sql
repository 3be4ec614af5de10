{#- SQL functions in the syntax of Spark 4: RETURN instead of AS, and two volatilities. -#}
{% macro zlayout__scalar_function_create_replace_signature_sql(target_relation) %}
CREATE OR REPLACE FUNCTION {{ target_relation.render() }} ({{ formatted_scalar_function_args_sql() | trim }})
RETURNS {{ model.returns.data_type }}
{{ scalar_function_volatility_sql() | trim }}
RETURN
{% endmacro %}


{% macro zlayout__scalar_function_body_sql() %}
(
  {{ model.compiled_code }}
)
{% endmacro %}


{% macro zlayout__scalar_function_volatility_sql() %}
  {%- set volatility = model.config.get('volatility') -%}
  {%- if volatility == 'deterministic' -%}
    DETERMINISTIC
  {%- elif volatility == 'non-deterministic' -%}
    NOT DETERMINISTIC
  {%- elif volatility is not none -%}
    {%- do unsupported_volatility_warning(volatility) -%}
  {%- endif -%}
{% endmacro %}
