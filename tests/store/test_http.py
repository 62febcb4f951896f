"""Files of a plain web server, read through the same protocol."""

import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from grebe.errors import StoreRefused
from grebe.store.opening import open_store
from grebe.store.protocol import ObjectMissing


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@contextmanager
def serving(handler: Callable[..., Quiet]) -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def web_server(tmp_path: Path) -> Iterator[str]:
    with serving(partial(Quiet, directory=str(tmp_path))) as endpoint:
        yield endpoint


class Refusing(Quiet):
    """Answers everything with one status, and says nothing of where else to look."""

    def __init__(self, status: int, *given: Any) -> None:
        self.status = status
        super().__init__(*given)

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (301, "STORE_REFUSED_REGION", r"s3://bucket/t is in another region; name it with the storage option region="),
        (400, "STORE_REFUSED_REQUEST", r"refused s3://bucket/t/object \(status 400\)"),
    ],
)
def test_an_object_store_that_refuses_is_not_asked_again(status: int, code: str, said: str) -> None:
    with serving(partial(Refusing, status)) as endpoint:
        options = {"endpoint": endpoint, "allow_http": "true", "access_key_id": "a", "secret_access_key": "b"}
        with pytest.raises(StoreRefused, match=said) as refused:
            open_store("s3://bucket/t", options).get("object")
    assert refused.value.code == code


def test_files_of_a_web_server_are_read(web_server: str, tmp_path: Path) -> None:
    (tmp_path / "my data").mkdir()
    (tmp_path / "my data" / "a b%20c.txt").write_bytes(b"0123456789")
    store = open_store(f"{web_server}/my data")
    assert store.get("a b%20c.txt") == b"0123456789"
    assert store.stat("a b%20c.txt").size == 10
    with pytest.raises(ObjectMissing):
        store.get("nothing")
