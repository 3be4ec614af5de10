"""The command line `zlayout`: what the run-operations do, for any table by its name or folder, without a dbt run."""
