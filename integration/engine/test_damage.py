"""A table whose metadata is damaged: an error that names the file, and a full refresh that makes the table anew."""

from pathlib import Path

import pytest

from dbt.adapters.zlayout.errors import CorruptError, NewerFormatError
from dbt.adapters.zlayout.table import ZTable

LOG = ".zlayout/timeline/log/00000000000000000000.json"


def rows(spark, count=10):
    return spark.range(count).selectExpr("id k")


def content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("damaged", [LOG, ".zlayout/table.json"])
def test_a_full_refresh_makes_the_table_anew_and_keeps_what_was_there(spark, damaged):
    name = f"z.damaged_{'log' if damaged == LOG else 'identity'}"
    folder = Path(ZTable.write(spark, name, rows(spark)).location.removeprefix("file://"))
    (folder / damaged).write_text("{")
    before = content(folder)
    with pytest.raises(CorruptError, match=rf"{damaged} is not JSON .*--full-refresh"):
        ZTable.for_name(spark, name)
    lines = []
    table = ZTable.write(spark, name, rows(spark, 7), progress=lines.append)
    assert any(damaged in line and table.location in line and str(folder) in line for line in lines)
    table.append(rows(spark, 1))
    assert spark.table(name).count() == 8
    assert table.index_status().num_rows == 0
    assert content(folder) == before
    assert ZTable.write(spark, name, rows(spark, 3)).location == table.location


def test_what_a_newer_release_has_written_is_not_made_anew(spark):
    table = ZTable.write(spark, "z.newer", rows(spark))
    folder = Path(table.location.removeprefix("file://"))
    entry = folder / LOG
    entry.write_text(entry.read_text().replace('"operation":"overwrite"', '"operation":"vacuum"'))
    before = content(folder)
    for write in (lambda: table.append(rows(spark)), lambda: ZTable.write(spark, "z.newer", rows(spark))):
        with pytest.raises(NewerFormatError, match=f"{LOG}: unknown operation 'vacuum'.*upgrade"):
            write()
    assert content(folder) == before
