"""The dbt side: what dbt and its macros call, in dbt's terms."""
