"""Files of texts that begin alike for long: how many of them a lookup opens, by cuts and bounds together."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dbt.adapters.zlayout.curve.model import CurveModel
from dbt.adapters.zlayout.index.statistics.column_stats import cut_bounds, stats_type

ROWS, FILES = 6_000, 24
PATH = "catalogue/séance/" * 6 + "item/"
HOSTS = (
    "http://shop.example.com/",
    "https://shop.example.com/",
    "https://shop.example.com/größe/",
    "https://www.x.org/",
)
URLS = [f"{HOSTS[row % 4]}{PATH}{row * 7919 % ROWS:06}?page={row % 7}" for row in range(ROWS)]
KNOWN = {"min_exact": True, "max_exact": True, "null_count": 0, "nan_count": 0, "value_count": 1}


@pytest.fixture(scope="module")
def bounds() -> list[tuple[bytes, bytes]]:
    """The bounds that the index keeps of each file."""
    keys = pa.array(URLS)
    model = CurveModel.build(
        pa.table({"0": keys}),
        [("url",)],
        "zorder",
        total_rows=ROWS,
        bytes_per_row=20,
        target_file_bytes=20 * ROWS // FILES,
        row_group_rows=None,
    )
    files = model.place([keys]).file
    texts = [sorted(keys.filter(pa.array(files == file)).to_pylist(), key=str.encode) for file in np.unique(files)]
    stats = pa.array([{"min": each[0], "max": each[-1], **KNOWN} for each in texts], stats_type(pa.string()))
    return [(row["min"].encode(), row["max"].encode()) for row in cut_bounds(stats).to_pylist()]


def opened(bounds: list[tuple[bytes, bytes]], low: str, high: str) -> int:
    return sum(least <= high.encode() and most >= low.encode() for least, most in bounds)


def test_a_lookup_of_a_url_opens_one_file(bounds: list[tuple[bytes, bytes]]) -> None:
    assert len(bounds) == FILES
    assert {opened(bounds, url, url) for url in URLS[::7]} == {1}


def test_a_range_within_one_beginning_opens_few_files(bounds: list[tuple[bytes, bytes]]) -> None:
    assert len(bounds) == FILES
    ranges = [(f"{host}{PATH}{low:06}", f"{host}{PATH}{low + 60:06}") for host in HOSTS for low in range(0, ROWS, 97)]
    assert max(opened(bounds, *each) for each in ranges) <= 2


def test_other_beginnings_open_no_file(bounds: list[tuple[bytes, bytes]]) -> None:
    for url in (
        "",
        "ftp://files",
        "http://shop.example.com/zoo",
        "https://shop.example.com/g/" + PATH,
        "https://www.y",
    ):
        assert opened(bounds, url, url) <= (1 if url.startswith("https://shop") else 0), url
