def model(dbt, session):
    dbt.config(materialized="table")
    numbers = dbt.ref("numbers")
    if dbt.config.get("kind") == "list":
        return [1, 2, 3]
    return numbers.no_such_method()
