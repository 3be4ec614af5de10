"""Relations as dbt lists them, and the catalog of ``dbt docs``."""
