"""What no log of a table may make its reader open."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.sources.elsewhere import SECRET


@pytest.fixture
def hr(tmp_path: Path) -> Path:
    """A file of somebody else's."""
    place = tmp_path / "hr" / "salaries.parquet"
    place.parent.mkdir()
    pq.write_table(SECRET, place)
    return place


@pytest.fixture
def heard() -> Iterator[tuple[str, list[str]]]:
    """A host that only the reader can reach: its URL, and what was asked of it."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        do_HEAD = do_GET

        def log_message(self, *anything: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    thread.join()
    server.server_close()
