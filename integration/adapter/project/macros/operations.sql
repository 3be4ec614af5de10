{% macro drop_it(identifier) %}
  {% do adapter.drop_relation(load_relation(api.Relation.create(schema=target.schema, identifier=identifier))) %}
{% endmacro %}

{% macro rename_it(identifier, to) %}
  {% set old = load_relation(api.Relation.create(schema=target.schema, identifier=identifier)) %}
  {% do adapter.rename_relation(old, old.incorporate(path={'identifier': to})) %}
{% endmacro %}

{% macro drop_the_schema() %}
  {% do adapter.drop_schema(api.Relation.create(schema=target.schema)) %}
{% endmacro %}

{% macro status_of(identifier) %}
  {% do print(tojson(adapter.index_status(target.schema ~ '.' ~ identifier))) %}
{% endmacro %}

{% macro pruning_of(identifier, predicate) %}
  {% set relation = api.Relation.create(schema=target.schema, identifier=identifier) %}
  {% do print(tojson(adapter.explain_pruning(relation, predicate))) %}
{% endmacro %}

{% macro layout_of(identifier, columns=none, predicate=none) %}
  {% set relation = api.Relation.create(schema=target.schema, identifier=identifier) %}
  {% do print(tojson(adapter.clustering_information(relation, columns, predicate))) %}
{% endmacro %}

{% macro kinds_of(identifiers) %}
  {% for each in identifiers %}
    {% set found = load_relation(api.Relation.create(schema=target.schema, identifier=each)) %}
    {% do print(each ~ ' ' ~ (found.type if found else 'none')) %}
  {% endfor %}
{% endmacro %}
