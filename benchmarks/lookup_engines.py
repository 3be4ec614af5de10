"""One engine takes upserts of keys from all over a table: run by `lookup.py`, in an environment with the engine's jar.

Prints one line of JSON: seconds of the build, of each upsert, and of a query for one key.
"""

import json

from clustering_engines import session, timed, wanted
from merge_on_read_engines import merge_into

COLUMNS = "sha2(cast(id as string), 256) order_id", "cast(id % 997 as int) day", "id % 1000003 amount"
FILES = 32


class Without:
    """This adapter, merge-on-read, without a lookup index."""

    def __init__(self, spark, work, frame, **settings):
        from dbt.adapters.zlayout.table.ztable import ZTable

        spark.sql(f"create schema b location '{work.out}/b'")
        settings = {"table_type": "merge_on_read", "unique_key": "order_id", "zorder": ["day"], **settings}
        # No compaction falls into a measured upsert of either kind.
        self.table = ZTable.write(spark, "b.t", frame, target_file_size="32mb", compaction="off", **settings)
        self.spark = spark

    def read(self):
        return self.spark.table("b.t")

    def upsert(self, frame):
        self.table.upsert(frame)


class With(Without):
    """The same with one."""

    def __init__(self, spark, work, frame):
        super().__init__(spark, work, frame, lookup=["order_id"])


class Delta:
    """Delta with deletion vectors; MERGE joins with the key column."""

    def __init__(self, spark, work, frame):
        self.spark, self.folder = spark, f"{work.out}/t"
        spark.conf.set("spark.databricks.delta.properties.defaults.enableDeletionVectors", "true")
        frame.repartitionByRange(FILES, "day").write.format("delta").save(self.folder)

    def read(self):
        return self.spark.read.format("delta").load(self.folder)

    def upsert(self, frame):
        merge_into(self.spark, f"delta.`{self.folder}`", frame, "order_id")


class Iceberg:
    """Iceberg merge-on-read, with position deletes; MERGE joins with the key column."""

    def __init__(self, spark, work, frame):
        self.spark = spark
        # Read when the catalog is first named.
        spark.conf.set("spark.sql.catalog.ice.warehouse", str(work.out))
        properties = {
            "format-version": "2",
            "write.merge.mode": "merge-on-read",
            "write.parquet.compression-codec": "zstd",
            "write.distribution-mode": "none",
        }
        writer = frame.repartitionByRange(FILES, "day").writeTo("ice.db.t").using("iceberg")
        for key, value in properties.items():
            writer = writer.tableProperty(key, value)
        writer.create()

    def read(self):
        return self.spark.table("ice.db.t")

    def upsert(self, frame):
        merge_into(self.spark, "ice.db.t", frame, "order_id")


class Hudi:
    """Hudi merge-on-read with its record index."""

    def __init__(self, spark, work, frame):
        self.spark, self.folder = spark, f"{work.out}/t"
        self.options = {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.datasource.write.recordkey.field": "order_id",
            "hoodie.datasource.write.precombine.field": "amount",
            "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
            "hoodie.metadata.enable": "true",
            "hoodie.metadata.record.index.enable": "true",
            "hoodie.index.type": "RECORD_INDEX",
            "hoodie.compact.inline": "false",
            "hoodie.parquet.compression.codec": "zstd",
            "hoodie.bulkinsert.shuffle.parallelism": str(FILES),
            "hoodie.upsert.shuffle.parallelism": "4",
        }
        bulk = {"hoodie.datasource.write.operation": "bulk_insert", "hoodie.bulkinsert.sort.mode": "NONE"}
        writer = frame.repartitionByRange(FILES, "day").write.format("hudi").options(**self.options, **bulk)
        writer.mode("overwrite").save(self.folder)

    def read(self):
        options = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
        return self.spark.read.format("hudi").options(**options).load(self.folder)

    def upsert(self, frame):
        options = {**self.options, "hoodie.datasource.write.operation": "upsert"}
        frame.write.format("hudi").options(**options).mode("append").save(self.folder)


ENGINES = {"without": Without, "with": With, "delta": Delta, "iceberg": Iceberg, "hudi": Hudi}


def main():
    work = wanted(__doc__, "lookup", ENGINES, rows=int, upserts=int)
    spark = session(work)
    spark.range(1_000_000).selectExpr("sum(hash(id))").collect()  # warms Java up
    build, engine = timed(lambda: ENGINES[work.engine](spark, work, spark.range(work.rows).selectExpr(*COLUMNS)))
    told = {"build": round(build, 1), "upserts": [], "queries": []}
    for number in range(work.upserts + 1):
        # The same keys for each engine, others in each upsert; computed before the clock starts.
        keys = spark.range(1_000).selectExpr(f"pmod(xxhash64(id, {number}), {work.rows}) id").distinct()
        frame = keys.selectExpr(COLUMNS[0], COLUMNS[1], f"-{number + 1}L amount").localCheckpoint()
        seconds, _ = timed(lambda rows=frame: engine.upsert(rows))
        key = frame.first().order_id
        asked, found = timed(lambda text=key: engine.read().where(f"order_id = '{text}'").collect())
        if [row.amount for row in found] != [-number - 1]:
            raise SystemExit(f"{key}: {found}")
        # The first ones warm the engine up.
        if number:
            told["upserts"].append(round(seconds, 2))
            told["queries"].append(round(asked, 2))
    told["sums"] = [str(each) for each in engine.read().selectExpr("count(*)", "sum(amount)").first()]
    print("RESULT " + json.dumps(told))


if __name__ == "__main__":
    main()
