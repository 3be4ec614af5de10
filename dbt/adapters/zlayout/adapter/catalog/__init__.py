"""The relations that dbt lists, and the catalog of ``dbt docs``."""
