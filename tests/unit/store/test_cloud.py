"""Requests of the store for object storage, counted by a server of HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from obstore.store import HTTPStore

from dbt.adapters.zlayout.store.cloud import CloudStore

CONTENT = bytes(range(256)) * 16_384


class Requests(BaseHTTPRequestHandler):
    """Serves ranges of one file and keeps the length of each."""

    lengths: list[int]

    def do_GET(self) -> None:
        first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
        part = CONTENT[int(first) : int(last) + 1]
        self.lengths.append(len(part))
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(CONTENT)}")
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, *_: Any) -> None:
        """Prints nothing."""


@pytest.fixture
def served() -> Iterator[tuple[CloudStore, list[int]]]:
    handler = type("Handler", (Requests,), {"lengths": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    yield CloudStore(address, HTTPStore.from_url(address, client_options={"allow_http": True})), handler.lengths
    server.shutdown()
    server.server_close()


def test_parts_far_from_each_other_do_not_bring_what_is_between_them(served) -> None:
    store, lengths = served
    starts = [number * 700_000 for number in range(6)]
    assert store.read_ranges("a", starts, [1024] * 6) == [CONTENT[start : start + 1024] for start in starts]
    assert sorted(lengths) == [1024] * 6


def test_parts_close_to_each_other_come_in_one_request(served) -> None:
    store, lengths = served
    starts = [number * 20_000 for number in range(6)]
    assert store.read_ranges("a", starts, [1024] * 6) == [CONTENT[start : start + 1024] for start in starts]
    assert lengths == [101_024]
