"""Stores that break the promise of put-if-absent are found out on first use; those that only fail now and then are not."""

import http.server
import random
import threading
from collections.abc import Iterator
from typing import ClassVar

import pytest

from grebe.clock import SYSTEM
from grebe.errors import StoreRefused, StoreUnreachable
from grebe.store.memory import MemoryStore, Moment
from grebe.store.opening import open_store
from grebe.store.probe import probe
from grebe.store.protocol import ObjectExists, OutcomeUnknown
from testbed.recipes import StoreRecipe


class IgnoresTheCondition(MemoryStore):
    def put_if_absent(self, path: str, data: bytes) -> None:
        self.put(path, data)


class ChecksThenWrites(MemoryStore):
    """Right as long as nobody else writes; the wait lets the other writer in between."""

    def put_if_absent(self, path: str, data: bytes) -> None:
        taken = path in self._objects
        SYSTEM.sleep(0.02)
        if taken:
            raise ObjectExists(path)
        self.put(path, data)


class KeepsTheOldButSaysYes(MemoryStore):
    def put_if_absent(self, path: str, data: bytes) -> None:
        if path not in self._objects:
            self.put(path, data)


class ForgetsEverything(MemoryStore):
    def put_if_absent(self, path: str, data: bytes) -> None:
        """Says yes and stores nothing."""


class S3WithoutConditions(http.server.BaseHTTPRequestHandler):
    """Stores and gives objects as an S3 server does, and overlooks `If-None-Match`."""

    objects: ClassVar[dict[str, bytes]]

    def do_PUT(self) -> None:
        self.objects[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self._reply(200)

    def do_GET(self) -> None:
        data = self.objects.get(self.path)
        self._reply(200 if data is not None else 404, data or b"")

    def do_DELETE(self) -> None:
        self.objects.pop(self.path, None)
        self._reply(204)

    def _reply(self, status: int, data: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", '"0"')
        self.send_header("Last-Modified", "Thu, 01 Jan 1970 00:00:00 GMT")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def careless_server() -> Iterator[tuple[str, dict[str, bytes]]]:
    class Handler(S3WithoutConditions):
        objects: ClassVar[dict[str, bytes]] = {}

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", Handler.objects
        server.shutdown()
        thread.join()


def fresh_name() -> str:
    return f"probed-{SYSTEM.new_id()}"


@pytest.mark.parametrize("kind", [IgnoresTheCondition, ChecksThenWrites, KeepsTheOldButSaysYes])
def test_a_store_that_lets_two_writers_win_is_refused_with_what_to_do(kind: type[MemoryStore]) -> None:
    store = kind(fresh_name())
    for _ in range(2):
        with pytest.raises(StoreRefused, match="location=") as refused:
            probe(store)
        assert refused.value.code == "STORE_REFUSED_NO_PUT_IF_ABSENT"
        assert store.uri in str(refused.value)
    assert list(store.list()) == []


def test_an_s3_server_that_overlooks_the_condition_is_refused(careless_server: tuple[str, dict[str, bytes]]) -> None:
    endpoint, objects = careless_server
    options = {"endpoint": endpoint, "allow_http": "true", "skip_signature": "true", "region": "us-east-1"}
    with pytest.raises(StoreRefused) as refused:
        probe(open_store(f"s3://lake/{fresh_name()}", options))
    assert refused.value.code == "STORE_REFUSED_NO_PUT_IF_ABSENT"
    assert objects == {}


@pytest.mark.parametrize(
    "kind",
    [
        "local",
        pytest.param("s3", marks=pytest.mark.xdist_group("s3")),
        pytest.param("hdfs", marks=pytest.mark.xdist_group("hdfs")),
    ],
)
def test_real_stores_keep_their_promise_and_are_left_clean(kind: str, request: pytest.FixtureRequest) -> None:
    recipe: StoreRecipe = request.getfixturevalue(f"{kind}_recipe")
    store = recipe.open()
    probe(store)
    assert list(store.list()) == []


def test_an_honest_store_is_asked_once_and_left_clean() -> None:
    store = MemoryStore(fresh_name())
    calls: list[str] = []
    store.script = lambda moment, call, path: calls.append(call)
    probe(store, "some/folder")
    assert list(store.list()) == []
    asked = len(calls)
    assert asked > 0
    probe(store)
    probe(MemoryStore(store.uri.removeprefix("memory://")))
    assert len(calls) == asked


def test_a_store_that_forgets_is_not_trusted() -> None:
    with pytest.raises(StoreUnreachable):
        probe(ForgetsEverything(fresh_name()))


@pytest.mark.parametrize("seed", range(20))
def test_lost_requests_lost_replies_and_false_conflicts_are_no_reason_to_refuse(seed: int) -> None:
    chance = random.Random(seed)

    def now_and_then(moment: Moment, call: str, path: str) -> None:
        if chance.random() < 0.2:
            raise OutcomeUnknown(f"{moment} {call}")
        if moment == "before" and call == "put_if_absent" and chance.random() < 0.1:
            raise ObjectExists(path)

    probe(MemoryStore(fresh_name(), script=now_and_then))


def test_no_right_to_write_is_passed_on() -> None:
    def refuse(moment: Moment, call: str, path: str) -> None:
        raise StoreRefused("no", detail="NO_PERMISSION")

    with pytest.raises(StoreRefused) as refused:
        probe(MemoryStore(fresh_name(), script=refuse))
    assert refused.value.code == "STORE_REFUSED_NO_PERMISSION"
