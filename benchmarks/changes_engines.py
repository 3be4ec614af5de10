"""One engine changes rows of a table of a hundred files: run by `changes.py`, in an environment with the engine's jar.

Prints one line of JSON: for each kind of change the seconds, the bytes written and the files replaced of each round.
"""

import json
from functools import partial

from clustering_engines import session, wanted
from merge_on_read_engines import merge_into, what_it_wrote

FILES = 100
COLUMNS = """
id as order_id, id * 7919 % 100003 as customer_id, date_add(date'2024-01-01', cast(id % 200 as int)) as day,
cast({price} as decimal(18, 2)) as price, sha2(cast(id as string), 256) as note, id % 3 = 0 as paid
"""


def rows(low, high, price="id % 1000", where="true"):
    return f"select {COLUMNS.format(price=price)} from range({low}, {high}) where {where}"


def kinds(total, number, rounds):
    """The query of each kind of change in a round; other keys in each."""
    stretch, step = total // (2 * rounds + 2), total // 1_000
    low, far = (number + 1) * stretch, (number + 1 + rounds) * stretch
    return {
        "10 neighbouring keys": rows(low, low + 10, -4),
        "1,000 neighbouring keys": rows(low, low + 1_000, -1),
        "10,000 keys in two stretches": f"{rows(low, low + 5_000, -2)} union all {rows(far, far + 5_000, -2)}",
        "1,000 keys all over": rows(0, total, -3, f"id % {step} = {number}"),
        "1,000 new keys": rows(total + 1_000 * number, total + 1_000 * number + 1_000),
    }


class Ours:
    """This adapter, copy-on-write."""

    def __init__(self, spark, work, name, **settings):
        from dbt.adapters.zlayout.table.ztable import ZTable

        spark.sql(f"create schema if not exists b location '{work.out}/b'")
        frame = spark.sql(rows(0, work.rows))
        # First as large as files come, to know what a hundredth is.
        whole = ZTable.write(spark, "b.sized", frame, zorder=["order_id"])
        a_file = sum(whole.snapshot().files["size_bytes"].to_pylist()) // FILES
        settings = {"zorder": ["order_id"], "target_file_size": a_file, **settings}
        self.folder, self.table = f"{work.out}/b/{name}", ZTable.write(spark, f"b.{name}", frame, **settings)

    def files(self):
        return len(self.table.snapshot().files)

    def merge(self, frame):
        return self.table.merge(frame, ["order_id"]).files_removed

    def prices(self):
        return self.table.read()


class MergeOnRead(Ours):
    """The same with logs."""

    def __init__(self, spark, work, name):
        super().__init__(spark, work, name, table_type="merge_on_read", unique_key="order_id")


class Delta:
    """Delta; files of neighbouring keys."""

    def __init__(self, spark, work, name, deletion_vectors="false"):
        self.spark, self.folder = spark, f"{work.out}/{name}"
        spark.conf.set("spark.databricks.delta.properties.defaults.enableDeletionVectors", deletion_vectors)
        spark.sql(rows(0, work.rows)).repartitionByRange(FILES, "order_id").write.format("delta").save(self.folder)

    def files(self):
        return self.spark.sql(f"describe detail delta.`{self.folder}`").first().numFiles

    def merge(self, frame):
        merge_into(self.spark, f"delta.`{self.folder}`", frame, "order_id")
        last = self.spark.sql(f"describe history delta.`{self.folder}` limit 1").first()
        return int(last.operationMetrics.get("numTargetFilesRemoved", 0))

    def prices(self):
        return self.spark.read.format("delta").load(self.folder)


class DeltaWithVectors(Delta):
    """The same with deletion vectors."""

    def __init__(self, spark, work, name):
        super().__init__(spark, work, name, "true")


ENGINES = {"copy_on_write": Ours, "merge_on_read": MergeOnRead, "delta": Delta, "delta_vectors": DeltaWithVectors}


def main():
    work = wanted(__doc__, "changes", ENGINES, rows=int, rounds=int)
    name = work.engine
    work.engine = name.partition("_")[0]
    spark = session(work)
    told = {"kinds": {}, "answers": []}
    for position, kind in enumerate(kinds(work.rows, 0, work.rounds + 1)):
        # A table for each kind: what one merge writes, the next one reads.
        engine = ENGINES[name](spark, work, f"t{position}")
        for number in range(work.rounds + 1):
            frame = spark.sql(kinds(work.rows, number, work.rounds + 1)[kind]).localCheckpoint()
            files = engine.files()
            seconds, removed, came = what_it_wrote(engine.folder, partial(engine.merge, frame))
            # The first round warms Java up.
            if number:
                told["kinds"].setdefault(kind, []).append((seconds, sum(came.values()), removed, files))
        sums = engine.prices().selectExpr("count(*)", "sum(price)", "sum(order_id)").first()
        told["answers"] += [str(each) for each in sums]
    print("RESULT " + json.dumps(told))


if __name__ == "__main__":
    main()
