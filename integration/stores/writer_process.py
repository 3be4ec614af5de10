"""A writer in a process of its own, as another machine's would be.

    python writer_process.py create LOCATION NUMBER ROUNDS    races for log/0, log/1, …; prints the rounds it won
    python writer_process.py append LOCATION NAME COMMITS     commits appends; prints their versions
    python writer_process.py die LOCATION NAME 1              is gone in the middle of a transaction

It prints 'ready' when it could start and waits for a line.
"""

import os
import sys

from dbt.adapters.zlayout.errors import AlreadyExistsError
from dbt.adapters.zlayout.store import open_store
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles
from dbt.adapters.zlayout.timeline.files.naming import data_file_path, new_group
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction


def opened(location):
    if location.startswith("hdfs:"):
        from pyspark.sql import SparkSession

        from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog

        builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        spark = builder.config("spark.driver.memory", "512m").getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        Catalog(spark)
    return open_store(location)


def create(store, number, rounds):
    content = number.encode() * 10_000
    won = []
    for version in range(rounds):
        try:
            store.create(f"log/{version}", content)
        except AlreadyExistsError:
            continue
        won.append(version)
    return won


def written(transaction, store, name):
    path = data_file_path("", new_group(), transaction.instant)
    store.put(path, name.encode())
    file = store.stat(path)
    return DataFiles.of([DataFile(path, (), 1, file.size_bytes, file.modified_ms, new_group())])


def append(store, name, commits):
    timeline = Timeline(store)
    versions = []
    for _ in range(commits):
        with Transaction.begin(timeline, Action.COMMIT, Operation.APPEND) as transaction:
            change = Change(written(transaction, store, name), schema_json='{"type":"struct","fields":[]}')
            versions.append(transaction.commit(change).version)
    return versions


def die(store, name, _):
    transaction = Transaction.begin(Timeline(store), Action.COMMIT, Operation.APPEND)
    written(transaction, store, name)
    print(transaction.instant, flush=True)
    os._exit(9)


if __name__ == "__main__":
    work, location, name, count = sys.argv[1:]
    store = opened(location)
    print("ready", flush=True)
    sys.stdin.readline()
    print(*{"create": create, "append": append, "die": die}[work](store, name, int(count)), flush=True)
    # A JVM beside this process would take seconds to end by itself.
    sys.stdout.flush()
