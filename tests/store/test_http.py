"""Files of a plain web server, read through the same protocol."""

import http.server
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from grebe.store.opening import open_store
from grebe.store.protocol import ObjectMissing


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def web_server(tmp_path: Path) -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_files_of_a_web_server_are_read(web_server: str, tmp_path: Path) -> None:
    (tmp_path / "my data").mkdir()
    (tmp_path / "my data" / "a b%20c.txt").write_bytes(b"0123456789")
    store = open_store(f"{web_server}/my data")
    assert store.get("a b%20c.txt") == b"0123456789"
    assert store.stat("a b%20c.txt").size == 10
    with pytest.raises(ObjectMissing):
        store.get("nothing")
