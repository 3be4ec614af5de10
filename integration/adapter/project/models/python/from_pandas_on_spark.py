def model(dbt, session):
    dbt.config(materialized="table", tags=["python"])
    return dbt.ref("numbers").limit(10).pandas_api()
