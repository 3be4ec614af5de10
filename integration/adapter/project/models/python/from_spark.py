from pyspark.sql import functions


def model(dbt, session):
    dbt.config(materialized="table", tags=["python"])
    few = dbt.ref("numbers").where(functions.col("id") < 100)
    return few.groupBy("code").agg(functions.count("*").alias("n"))
