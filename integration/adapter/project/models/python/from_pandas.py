import pandas


def model(dbt, session):
    dbt.config(materialized="zordered_table", zorder=["id"], tags=["python"])
    frame = dbt.ref("numbers").limit(4).toPandas()
    frame["share"] = [0.5, None, 1.5, None]
    frame["day"] = pandas.to_datetime("2024-01-01") + pandas.to_timedelta(frame["id"], unit="D")
    return frame[["id", "share", "day"]]
