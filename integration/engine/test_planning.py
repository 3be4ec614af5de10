"""Planning costs a handful of calls to the JVM, whatever the number of partitions and files."""

import pytest
from comparing import same_checksum

from dbt.adapters.zlayout import enable
from dbt.adapters.zlayout.spark.catalog import Catalog
from dbt.adapters.zlayout.spark.relations import installed
from dbt.adapters.zlayout.table import ZTable


@pytest.fixture(scope="module")
def tables(spark):
    enable(spark)
    for name, partitions in (("z.few", 3), ("z.many", 300)):
        frame = spark.sql(
            f"select id, id % {partitions} as part, cast(id % {partitions} as string) as text from range(3000)"
        )
        ZTable.write(spark, name, frame, zorder=["id"], partition_by=["part", "text"])


class Calls:
    """Counts what goes over the gateway to the JVM."""

    def __init__(self, spark, monkeypatch):
        self.count = 0
        client = spark.sparkContext._gateway._gateway_client
        original = client.send_command

        def counted(command, *args, **kwargs):
            # Calls of methods and constructors; what the garbage collector lets go comes whenever it likes.
            self.count += command.startswith(("c\n", "i\n"))
            return original(command, *args, **kwargs)

        monkeypatch.setattr(client, "send_command", counted)


def calls_of(spark, monkeypatch, name, condition):
    frame = spark.sql(f"select count(*) from {name} where {condition}")
    with monkeypatch.context() as patched:
        calls = Calls(spark, patched)
        index = installed(Catalog(spark), Catalog(spark).name(name))
        assert frame.collect()[0][0] > 0
    return calls.count, index.last_scan


@pytest.mark.parametrize("condition", ["part >= 1", "part >= 1 and id > 5", "id > 5", "length(text) >= 1 and id >= 0"])
def test_a_hundred_times_the_partitions_take_no_more_calls(spark, tables, monkeypatch, condition):
    for first in (True, False):  # the first scan of a version lists its files in the JVM
        few, scan_of_few = calls_of(spark, monkeypatch, "z.few", condition)
        many, scan_of_many = calls_of(spark, monkeypatch, "z.many", condition)
        assert scan_of_many[1] >= 300 > scan_of_few[1]
        assert many - few <= 60, (first, few, many)


def test_partition_conditions_and_bounds_act_together_on_many_partitions(spark, tables):
    for condition in (
        "part in (5, 250) and id < 2000",
        "part = 7 or id = 11",
        "text = '299'",
        "part is null",
        "id < 0",
    ):
        expected = spark.sql(
            f"select * from (select id, id % 300 as part, cast(id % 300 as string) as text from range(3000)) where {condition}"
        )
        assert same_checksum(spark.sql(f"select * from z.many where {condition}"), expected)
