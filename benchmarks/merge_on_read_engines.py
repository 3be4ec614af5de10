"""One engine takes rounds of random upserts: run by `merge_on_read.py`, in an environment with the engine's jar.

Prints one line of JSON: seconds and bytes written of each round, seconds of full reads, and of the compaction.
"""

import json
from pathlib import Path

from clustering_engines import session, timed, wanted

ROWS = "select id k, cast(id % 1000 as int) a, id * 7 % 100003 b, sha2(cast(id as string), 256) v from range({rows})"
HIDDEN = {".zlayout", "_spark_metadata", "_delta_log", ".hoodie"}
CHANGES = (".log.parquet", ".deletes.parquet")


def changes(spark, work, number):
    count = max(1, round(work.rows * work.share))
    # Keys spread over the whole table, others in each round.
    keys = f"select distinct pmod(xxhash64(id, {number}), {work.rows}) k from range({count})"
    return spark.sql(
        f"select k, -{number} a, k * 7 % 100003 b, sha2(concat(k, '/', {number}), 256) v from ({keys})"
    ).selectExpr("k", "cast(a as int) a", "b", "v")


def on_disk(folder):
    return {path: path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()}


def what_it_wrote(folder, action):
    """Seconds of an action, its outcome, and the files that it left in a folder, with their sizes."""
    before = on_disk(folder)
    seconds, outcome = timed(action)
    return seconds, outcome, {path: size for path, size in on_disk(folder).items() if before.get(path) != size}


def merge_into(spark, table, frame, key):
    frame.createOrReplaceTempView("changes")
    spark.sql(
        f"merge into {table} t using changes c on t.{key} = c.{key} "
        "when matched then update set * when not matched then insert *"
    )


class Ours:
    """This adapter; its tables keep no old versions for longer than they must."""

    def __init__(self, spark, work, **settings):
        from dbt.adapters.zlayout.table.ztable import ZTable

        spark.sql(f"create schema b location '{work.out}/b'")
        frame = spark.sql(ROWS.format(rows=work.rows))
        self.spark, self.folder = spark, f"{work.out}/b"
        self.table = ZTable.write(spark, "b.t", frame, zorder=["k"], target_file_size="16mb", **settings)

    def read(self):
        return self.spark.table("b.t")

    def upsert(self, frame):
        self.table.merge(frame, "k")

    def compact(self):
        self.table.cluster()


class MergeOnRead(Ours):
    """The same with logs."""

    def __init__(self, spark, work):
        super().__init__(spark, work, table_type="merge_on_read", unique_key="k")

    def upsert(self, frame):
        self.table.upsert(frame)

    def compact(self):
        self.table.compact()


class Delta:
    """Delta with deletion vectors."""

    def __init__(self, spark, work):
        self.spark, self.folder = spark, f"{work.out}/t"
        spark.conf.set("spark.databricks.delta.properties.defaults.enableDeletionVectors", "true")
        spark.sql(ROWS.format(rows=work.rows)).repartitionByRange(32, "k").write.format("delta").save(self.folder)

    def read(self):
        return self.spark.read.format("delta").load(self.folder)

    def upsert(self, frame):
        merge_into(self.spark, f"delta.`{self.folder}`", frame, "k")

    def compact(self):
        self.spark.sql(f"optimize delta.`{self.folder}`").collect()
        self.spark.sql(f"reorg table delta.`{self.folder}` apply (purge)").collect()


class Hudi:
    """Hudi merge-on-read; compaction is left for the end, as with ours."""

    def __init__(self, spark, work):
        self.spark, self.folder = spark, f"{work.out}/t"
        self.options = {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.datasource.write.recordkey.field": "k",
            "hoodie.datasource.write.precombine.field": "a",
            "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
            "hoodie.compact.inline": "false",
            "hoodie.parquet.compression.codec": "zstd",
            "hoodie.bulkinsert.shuffle.parallelism": "32",
            "hoodie.upsert.shuffle.parallelism": "4",
        }
        frame = spark.sql(ROWS.format(rows=work.rows)).repartitionByRange(32, "k")
        bulk = {"hoodie.datasource.write.operation": "bulk_insert", "hoodie.bulkinsert.sort.mode": "NONE"}
        frame.write.format("hudi").options(**self.options, **bulk).mode("overwrite").save(self.folder)

    def read(self):
        return self.spark.read.format("hudi").load(self.folder)

    def upsert(self, frame):
        options = {**self.options, "hoodie.datasource.write.operation": "upsert"}
        frame.write.format("hudi").options(**options).mode("append").save(self.folder)

    def compact(self):
        for step in ("schedule", "run"):
            self.spark.sql(f"call run_compaction(op => '{step}', path => '{self.folder}')").collect()


ENGINES = {"copy_on_write": Ours, "merge_on_read": MergeOnRead, "delta": Delta, "hudi": Hudi}


def full_read(engine, tries):
    """Seconds of a query that needs every value, and its answer: the best of some tries."""
    query = "count(*) n", "sum(k) k", "sum(a) a", "sum(b) b", "sum(length(v)) v"
    timings = [timed(lambda: engine.read().selectExpr(*query).collect()[0]) for _ in range(tries)]
    return min(seconds for seconds, _ in timings), tuple(timings[0][1])


def main():
    work = wanted(__doc__, "records", ENGINES, rows=int, share=float, rounds=int, tries=int, read_every=int)
    spark = session(work)
    engine = ENGINES[work.engine](spark, work)
    told = {"seconds": [], "bytes": [], "data_bytes": [], "log_bytes": [], "reads": {}}
    told["reads"]["0"], answer = full_read(engine, work.tries)
    for number in range(1, work.rounds + 1):
        # Computed before the clock starts.
        frame = changes(spark, work, number).localCheckpoint()
        seconds, _, came = what_it_wrote(engine.folder, lambda rows=frame: engine.upsert(rows))
        told["seconds"].append(round(seconds, 2))
        told["bytes"].append(sum(came.values()))
        data = {path: size for path, size in came.items() if not HIDDEN.intersection(path.parts)}
        told["data_bytes"].append(sum(data.values()))
        told["log_bytes"].append(sum(size for path, size in data.items() if path.name.endswith(CHANGES)))
        if number % work.read_every == 0:
            told["reads"][str(number)], answer = full_read(engine, work.tries)
    told["compaction"], _ = timed(engine.compact)
    told["reads"]["compacted"], compacted = full_read(engine, work.tries)
    if compacted != answer:
        raise SystemExit(f"rows differ after the compaction: {answer} and {compacted}")
    told["answer"] = [str(each) for each in answer]
    told["table_bytes"] = sum(on_disk(engine.folder).values())
    print("RESULT " + json.dumps(told))


if __name__ == "__main__":
    main()
