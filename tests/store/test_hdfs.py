"""HDFS without a JVM: lost calls to the name node, drafts, permissions."""

import contextlib
import threading
from collections.abc import Callable

import pytest

from grebe.clock import SYSTEM
from grebe.errors import StoreRefused
from grebe.store.hdfs import HdfsStore
from grebe.store.paths import DRAFT_FOLDER
from grebe.store.protocol import ObjectExists, ObjectMissing, OutcomeUnknown
from testbed.hdfs import HdfsServer
from testbed.recipes import StoreRecipe
from testbed.tcp_proxy import tcp_proxy

pytestmark = pytest.mark.xdist_group("hdfs")


@pytest.mark.parametrize("verb", ["put", "put_if_absent"])
def test_a_rename_whose_reply_is_lost_is_unknown_and_done(hdfs_server: HdfsServer, verb: str) -> None:
    root = SYSTEM.new_id()
    direct = StoreRecipe(hdfs_server.uri(root)).open()
    direct.put("log/0", b"the folder is there")
    with tcp_proxy(hdfs_server.address) as proxy:
        store = HdfsStore(f"hdfs://127.0.0.1:{proxy.port}/{root}", {})
        proxy.breaks[b"rename2"] = "after"
        with pytest.raises(OutcomeUnknown):
            getattr(store, verb)("log/1", b"mine")
        assert proxy.broken == [b"rename2"]
    assert direct.get("log/1") == b"mine"


def _put_until_told(store: HdfsStore) -> None:
    """A client whose connection was cut may need some calls until it has another one."""
    for attempt in range(50):
        try:
            with contextlib.suppress(ObjectExists):
                store.put_if_absent("log/1", b"mine")
            return
        except OutcomeUnknown:
            if attempt == 49:
                raise
            SYSTEM.sleep(0.1)


@pytest.mark.parametrize("call", [b"create", b"addBlock", b"rename2"])
def test_a_call_that_never_arrives_does_no_harm(hdfs_server: HdfsServer, call: bytes) -> None:
    root = SYSTEM.new_id()
    direct = StoreRecipe(hdfs_server.uri(root)).open()
    with tcp_proxy(hdfs_server.address) as proxy:
        store = HdfsStore(f"hdfs://127.0.0.1:{proxy.port}/{root}", {})
        proxy.breaks[call] = "before"
        try:
            store.put_if_absent("log/1", b"mine")
            stored = True
        except OutcomeUnknown:
            stored = False
        assert proxy.broken == [call]
        if not stored:
            with pytest.raises(ObjectMissing):
                direct.get("log/1")
            _put_until_told(store)
    assert direct.get("log/1") == b"mine"


def test_a_name_node_that_does_not_answer_is_unknown_within_seconds() -> None:
    store = HdfsStore("hdfs://127.0.0.1:9/x", {"dfs.client.failover.max.attempts": "1"})
    with pytest.raises(OutcomeUnknown):
        store.get("object")
    with pytest.raises(OutcomeUnknown):
        store.put_if_absent("object", b"x")


def test_drafts_are_hidden_and_the_losers_removed(hdfs_recipe: StoreRecipe) -> None:
    store = hdfs_recipe.open()
    store.put_if_absent("log/1", b"first")
    with pytest.raises(ObjectExists):
        store.put_if_absent("log/1", b"second")
    drafts = HdfsStore(f"{hdfs_recipe.uri}/{DRAFT_FOLDER}", {})
    assert list(drafts.list()) == []
    drafts.put("left behind by a crash", b"x")
    assert [info.path for info in store.list()] == ["log/1"]


def test_a_file_where_a_folder_should_be_is_refused(hdfs_recipe: StoreRecipe) -> None:
    store = hdfs_recipe.open()
    store.put("a", b"x")
    for write in (store.put, store.put_if_absent):
        with pytest.raises(StoreRefused) as refused:
            write("a/b", b"x")
        assert refused.value.code == "STORE_REFUSED_PATH"
    store.put("folder/object", b"x")
    with pytest.raises((StoreRefused, ObjectExists)):
        store.put_if_absent("folder", b"x")


def test_a_folder_that_belongs_to_others_cannot_be_written(
    hdfs_server: HdfsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = SYSTEM.new_id()
    StoreRecipe(hdfs_server.uri(root)).open().put("object", b"x")
    monkeypatch.setenv("HADOOP_USER_NAME", "somebody-else")
    store = StoreRecipe(hdfs_server.uri(root)).open()
    assert store.get("object") == b"x"
    calls: list[Callable[[], None]] = [
        lambda: store.put_if_absent("new", b"x"),
        lambda: store.put("object", b"y"),
        lambda: store.delete("object"),
    ]
    for call in calls:
        with pytest.raises(StoreRefused) as refused:
            call()
        assert refused.value.code == "STORE_REFUSED_NO_PERMISSION"


def test_threads_may_share_a_store(hdfs_recipe: StoreRecipe) -> None:
    store = hdfs_recipe.open()
    failures: list[BaseException] = []

    def work(worker: int) -> None:
        try:
            for number in range(5):
                store.put(f"{worker}/{number}", str(number).encode())
                assert store.get(f"{worker}/{number}") == str(number).encode()
        except BaseException as failure:  # noqa: BLE001 - handed to the main thread
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(list(store.list())) == 30


@pytest.mark.parametrize(
    ("folder", "file", "expected"),
    [(0o700, 0o600, 0o700), (0o750, 0o640, 0o750), (0o755, 0o640, 0o750), (0o755, 0o644, 0o755), (0o755, 0o600, 0o700)],
)
def test_what_is_made_beside_a_table_is_closed_to_whoever_may_not_read_it(
    hdfs_server: HdfsServer, folder: int, file: int, expected: int
) -> None:
    lake = SYSTEM.new_id()
    table = HdfsStore(hdfs_server.uri(f"{lake}/t"), {})
    table.put("part-0", b"x")
    table._client.set_permission(f"/{lake}/t/part-0", file)
    table._client.set_permission(f"/{lake}/t", folder)
    writes: dict[str, Callable[[HdfsStore], None]] = {
        "t": lambda store: store.put_if_absent("log/0", b"x"),
        "u": lambda store: store.make_folder("d"),
    }
    for name, write in writes.items():
        store = HdfsStore(hdfs_server.uri(f"{lake}/_grebe/{name}"), {})
        store.take_access_of(table.uri)
        write(store)
        assert store._client.get_file_info(f"/{lake}/_grebe/{name}").permission & 0o777 == expected
