def model(dbt, session):
    dbt.config(
        materialized="incremental", incremental_strategy="merge", unique_key="id", zorder=["id"], tags=["python"]
    )
    if dbt.is_incremental:
        return session.sql(f"select max(id) + 1 as id, 'later' as made from {dbt.this} union all select 0, 'again'")
    return session.sql("select id, 'first' as made from range(3)")
