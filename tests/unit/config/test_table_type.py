"""Settings of merge-on-read tables: defaults, what they must be, and what the others may not say."""

from __future__ import annotations

import pyarrow as pa
import pytest
import yaml

from dbt.adapters.zlayout.config.clustering import parse_reclustering
from dbt.adapters.zlayout.config.schema_check import check_against_schema
from dbt.adapters.zlayout.config.table_config import parse_table_config, read_stored, stored_settings
from dbt.adapters.zlayout.config.table_type import TABLE_TYPE_KEYS, TableTypeConfig
from dbt.adapters.zlayout.errors import ConfigError

MERGING = {"table_type": "merge_on_read", "unique_key": "k"}


def test_a_table_copies_on_write_unless_it_says_otherwise():
    assert parse_table_config({"unique_key": "k"}).table_type == TableTypeConfig()
    assert not TableTypeConfig().merges_on_read


def test_what_is_set_is_read():
    found = parse_table_config(
        {
            **MERGING,
            "unique_key": ["a", "`b.c`"],
            "ordering": "seen",
            "update_partition_path": "false",
            "small_file_limit": "1mb",
            "log_max_size": "2mb",
            "bucket_buffer_size": "3mb",
            "buffer_size": 4096,
            "compaction": "Deferred",
            "compact_every": "7",
            "compaction_min_log_ratio": "0.3",
            "compaction_max_logs": "9",
            "compaction_strategy": "age",
            "compaction_max_bytes": "1gb",
            "retain_deletes_hours": "1.5",
        }
    ).table_type
    assert found == TableTypeConfig(
        kind="merge_on_read",
        unique_key=("a", "b.c"),
        ordering="seen",
        update_partition_path=False,
        small_file_bytes=1 << 20,
        log_max_bytes=2 << 20,
        bucket_buffer_bytes=3 << 20,
        buffer_bytes=4096,
        compaction="deferred",
        compact_every=7,
        compaction_min_log_ratio=0.3,
        compaction_max_logs=9,
        compaction_strategy="age",
        compaction_max_bytes=1 << 30,
        retain_deletes_hours=1.5,
    )
    assert parse_table_config(MERGING).table_type == TableTypeConfig("merge_on_read", ("k",))


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"table_type": "mor"}, "table_type: 'mor' is not one of copy_on_write, merge_on_read"),
        (
            {"table_type": "merge_on_read"},
            "unique_key: table_type 'merge_on_read' needs the columns that identify a row",
        ),
        ({**MERGING, "unique_key": "a.b"}, "unique_key: 'a.b' is a field of a struct; name a top-level column"),
        ({**MERGING, "ordering": ["a", "b"]}, "ordering: ['a', 'b'] names 2 columns"),
        ({**MERGING, "writer": "spark"}, "writer: 'spark' cannot write log files"),
        ({**MERGING, "compaction": "always"}, "compaction: 'always' is not one of inline, deferred, off"),
        ({**MERGING, "compact_every": 0}, "compact_every: 0 is not a whole number from 1"),
        ({**MERGING, "compaction_min_log_ratio": -1}, "compaction_min_log_ratio: -1 is not a number of at least 0"),
        ({**MERGING, "compaction_max_logs": 0}, "compaction_max_logs: 0 is not a whole number from 1"),
        ({**MERGING, "retain_deletes_hours": -1}, "retain_deletes_hours: -1 is not a number of hours from 0 to"),
        ({**MERGING, "log_max_size": "big"}, "log_max_size: 'big' is not a size"),
        ({**MERGING, "compaction_strategy": "x"}, "compaction_strategy: 'x' is not one of log_size"),
    ],
)
def test_what_is_wrong_is_said_with_the_value(settings, problem):
    with pytest.raises(ConfigError) as raised:
        parse_table_config(settings)
    assert [each for each in raised.value.problems if each.startswith(problem)]


def test_the_word_off_needs_no_quotes_in_yaml():
    (value,) = yaml.safe_load("compaction: off").values()
    assert parse_table_config({**MERGING, "compaction": value}).table_type.compaction == "off"
    assert parse_reclustering({"clustering": value}, []).mode == "off"
    assert parse_reclustering({"clustering": str(value)}, []).mode == "off"


@pytest.mark.parametrize("key", TABLE_TYPE_KEYS[1:])
def test_a_table_that_copies_on_write_has_none_of_the_other_settings(key):
    with pytest.raises(ConfigError, match=f"{key}: applies only to table_type 'merge_on_read'"):
        parse_table_config({key: "1mb"})


def test_columns_are_spelled_as_the_model_spells_them_and_log_columns_are_taken():
    schema = pa.schema([("K", pa.int64()), ("Seen", pa.timestamp("us")), ("tags", pa.list_(pa.string()))])
    bound = check_against_schema(parse_table_config({**MERGING, "ordering": "seen"}), schema).table_type
    assert (bound.unique_key, bound.ordering) == (("K",), "Seen")
    with pytest.raises(ConfigError, match="unique_key: column 'tags' has type"):
        check_against_schema(parse_table_config({**MERGING, "unique_key": "tags"}), schema)
    with pytest.raises(ConfigError, match="_zl_seq: log files have a column of this name"):
        check_against_schema(parse_table_config(MERGING), schema.append(pa.field("_zl_seq", pa.int64())))


def test_a_version_stores_later_settings_only_if_they_are_not_the_default():
    keys = {"table_type": "merge_on_read", "unique_key": "k"}
    plain = parse_table_config(keys)
    later = {"compact_after_hours", "compaction_max_deleted_share", "payload"}
    assert not later & set(stored_settings(plain)["table_type"])
    assert read_stored(stored_settings(plain), ()).table_type == plain.table_type
    other = parse_table_config(
        {**keys, "compact_after_hours": 6, "compaction_max_deleted_share": 0.5, "payload": "partial"}
    )
    found = read_stored(stored_settings(other), ()).table_type
    assert (found.compact_after_hours, found.compaction_max_deleted_share, found.payload) == (6, 0.5, "partial")
    assert found == other.table_type
