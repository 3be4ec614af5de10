"""Texts that begin alike for long, as URLs and paths do: files are told apart by what follows."""

from __future__ import annotations

import pytest
from comparing import same_rows
from indexed_rows import reads
from scanned import Scans

from dbt.adapters.zlayout.table.ztable import ZTable

pytestmark = pytest.mark.spark

ROWS = 12_000
# Several beginnings of more than 64 bytes, one with characters of several bytes; some rows begin otherwise.
URLS = f"""
  select id, id * 7919 % 1000003 n,
    case id % 10 when 9 then null when 8 then concat('ftp://files.example.org/', id)
      else concat(
        elt(cast(id % 4 + 1 as int), 'http://shop.example.com/', 'https://shop.example.com/',
          'https://shop.example.com/straße/größe/', 'https://www.example.com/'),
        repeat('catalogue/séance/', 6), 'item/', lpad(id * 7919 % {ROWS}, 6, '0'), '?page=', id % 7) end url
  from range({{0}}, {{1}})
"""
BEGINNING = "repeat('catalogue/séance/', 6), 'item/'"


def point(spark, number):
    return spark.sql(URLS.format(number, number + 1)).head().url


def opened(spark, query):
    with Scans(spark) as scans:
        found = spark.sql(query).collect()
    return found, scans.files[0]


@pytest.mark.slow
def test_lookups_of_urls_open_few_files(spark):
    source = spark.sql(URLS.format(0, ROWS)).cache()
    table = ZTable.write(spark, "z.urls", source, zorder=["url"], target_file_size="8kb")
    files = len(table.snapshot().files)
    assert files >= 12
    assert same_rows(spark.table("z.urls"), source)
    assert table.clustering_information().expected_files["point"] < 3
    for number in (0, 1, 2, 3, 4_444, 11_999 - 11_999 % 10):
        url = point(spark, number)
        found, count = opened(spark, f"select id from z.urls where url = '{url}'")
        assert found == source.where(f"url = '{url}'").select("id").collect()
        assert count == 1
    for host in ("http://shop.example.com/", "https://www.example.com/"):
        low, high = (f"concat('{host}', {BEGINNING}, '{each}')" for each in ("003000", "003300"))
        found, count = opened(spark, f"select count(*) from z.urls where url between {low} and {high}")
        assert found == [(source.where(f"url between {low} and {high}").count(),)]
        assert found[0][0] > 0
        assert count <= 2
    assert table.verify(data=True).num_rows == 0


@pytest.mark.slow
def test_urls_outside_the_known_beginnings_are_placed_too(spark):
    source = spark.sql(URLS.format(0, ROWS)).where("id % 4 < 2").cache()
    table = ZTable.write(spark, "z.more_urls", source, zorder=["url", "n"], target_file_size="8kb")
    more = spark.sql(URLS.format(0, ROWS)).where("id % 4 >= 2").cache()
    table.append(more)
    both = source.unionByName(more).cache()
    assert same_rows(spark.table("z.more_urls"), both)
    files = len(table.snapshot().files)
    url = point(spark, 6)
    assert spark.sql(f"select id from z.more_urls where url = '{url}'").collect() == [(6,)]
    # Merges find the files of their keys.
    for most in (3, 300):
        changed = both.where(f"id < {most * 40} and id % 40 = 6 and url is not null").withColumn("n", both.n + 1)
        summary = table.merge(changed, unique_key=["url"])
        both = both.join(changed.select("url"), "url", "left_anti").unionByName(changed).cache()
        assert same_rows(spark.table("z.more_urls"), both)
        assert most > 3 or summary.files_removed < files
    table.cluster(rewrite_all=True)
    assert same_rows(spark.table("z.more_urls"), both)
    clustered = len(table.snapshot().files)
    assert reads(table, f"url = '{url}'") <= clustered / 2
    assert table.verify(data=True).num_rows == 0
    assert table.index_status().num_rows == 0
