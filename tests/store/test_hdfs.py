"""HDFS without a JVM: lost calls to the name node, drafts, permissions."""

import contextlib
import json
import threading
from collections.abc import Callable

import pytest
from click.testing import CliRunner

from grebe.cli.main import main
from grebe.clock import SYSTEM
from grebe.errors import StoreRefused
from grebe.store.hdfs import HdfsStore
from grebe.store.paths import DRAFT_FOLDER
from grebe.store.protocol import ObjectExists, ObjectMissing, OutcomeUnknown
from testbed.hdfs import HdfsServer
from testbed.recipes import StoreRecipe
from testbed.tcp_proxy import tcp_proxy
from tests.store.hdfs_tables import PARTITIONED, HdfsTable

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


def prepared(table: HdfsTable, name: str = "_grebe/t") -> HdfsStore:
    store = HdfsStore(table.uri(name), {})
    store.take_access_of(table.uri("t"))
    store.put_if_absent(f"log/{SYSTEM.new_id()}", b"x")
    return store


@pytest.mark.parametrize("what", PARTITIONED)
def test_what_is_made_beside_a_table_is_closed_to_whom_a_partition_keeps_out(
    hdfs_server: HdfsServer, what: str
) -> None:
    modes, expected = PARTITIONED[what]
    table = HdfsTable(hdfs_server)
    table.write("t/day=0/hour=0/part-0")
    table.write("t/day=1/hour=1/part-0", **modes)
    prepared(table)
    assert table.mode("_grebe/t") == expected


def test_nobody_reads_the_indexes_of_a_table_with_a_partition_that_they_may_not_read(
    hdfs_server: HdfsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = HdfsTable(hdfs_server)
    for day in range(40):
        table.write(f"t/day={day}/part-0")
    path = prepared(table).uri
    monkeypatch.setenv("HADOOP_USER_NAME", "somebody-else")
    assert len(list(HdfsStore(path, {}).list("log"))) == 1
    monkeypatch.undo()
    table.chmod("t/day=29", 0o700)
    prepared(table)
    assert table.mode("_grebe/t") == 0o700
    monkeypatch.setenv("HADOOP_USER_NAME", "somebody-else")
    with pytest.raises(StoreRefused):
        list(HdfsStore(path, {}).list("log"))


def test_the_group_of_a_partition_is_not_that_of_the_table(hdfs_server: HdfsServer) -> None:
    table = HdfsTable(hdfs_server)
    table.write("t/day=1/part-0", 0o640, t=0o750, day_1=0o750)
    table.chgrp("t/day=1", "payroll")
    prepared(table)
    assert table.mode("_grebe/t") == 0o700


def test_the_group_of_the_table_is_taken_over(hdfs_server: HdfsServer) -> None:
    table = HdfsTable(hdfs_server)
    table.write("t/day=1/part-0", 0o640, t=0o750, day_1=0o750)
    for path in ("t", "t/day=1", "t/day=1/part-0"):
        table.chgrp(path, "analysts")
    prepared(table)
    made = table.client.get_file_info(f"/{table.lake}/_grebe/t")
    assert (made.permission & 0o777, made.group) == (0o750, "analysts")


def test_an_access_control_list_of_a_partition_closes_the_indexes(hdfs_server: HdfsServer) -> None:
    table = HdfsTable(hdfs_server)
    table.write("t/day=1/part-0", 0o640, t=0o750, day_1=0o700)
    table.grant("t/day=1", "alice", "r-x")
    assert table.mode("t/day=1") == 0o750  # of which the bits of the group are those of the list
    prepared(table)
    assert table.mode("_grebe/t") == 0o700


def test_a_list_that_the_folder_above_hands_down_gets_nobody_in(hdfs_server: HdfsServer) -> None:
    table = HdfsTable(hdfs_server)
    table.write("t/part-0", 0o640, t=0o750)
    table.grant("", "carol", "r-x", "default")
    prepared(table)
    assert table.mode("_grebe/t") == 0o750
    entries = table.client.get_acl_status(f"/{table.lake}/_grebe/t").entries
    assert [one.name for one in entries if one.scope == "access" and one.name] == []


def test_a_closed_folder_above_the_table_closes_indexes_elsewhere(hdfs_server: HdfsServer) -> None:
    table = HdfsTable(hdfs_server)
    table.write("t/part-0")
    store = HdfsStore(table.uri("elsewhere"), {})
    table.write("closed/deep/t/part-0", closed=0o750)
    store.take_access_of(table.uri("closed/deep/t"))
    store.put_if_absent("log/0", b"x")
    assert table.mode("elsewhere") == 0o750


def test_a_folder_that_others_may_write_to_keeps_that(hdfs_server: HdfsServer) -> None:
    table = HdfsTable(hdfs_server)
    table.write("t/part-0")
    prepared(table)
    table.chmod("_grebe/t", 0o775)
    prepared(table)
    assert table.mode("_grebe/t") == 0o775


def test_a_folder_that_cannot_be_closed_is_named_in_the_log(
    hdfs_server: HdfsServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = HdfsTable(hdfs_server)
    table.write("t/part-0")
    prepared(table)
    table.chmod("_grebe/t/log", 0o777)
    table.chmod("_grebe/t/.grebe-drafts", 0o777)
    table.chmod("t/part-0", 0o640)
    monkeypatch.setenv("HADOOP_USER_NAME", "somebody-else")
    prepared(table)
    assert "indexes_more_open_than_table" in caplog.text


def test_the_doctor_compares_indexes_on_hdfs_with_their_table(hdfs_server: HdfsServer) -> None:
    table = HdfsTable(hdfs_server)
    table.write("t/day=1/part-0")
    prepared(table)

    def found() -> dict[str, str]:
        ran = CliRunner().invoke(main, ["--json", "doctor", table.uri("t")])
        return next(one for one in json.loads(ran.stdout) if one["check"] == "access")

    assert found()["result"] == "ok"
    assert table.uri("_grebe/t") in found()["found"]
    table.chmod("t/day=1", 0o750)
    assert found()["result"] == "wrong"
    assert f"hdfs dfs -chmod o-rwx {table.uri('_grebe/t')}" in found()["advice"]
    table.chmod("_grebe/t", 0o750)
    assert found()["result"] == "ok"


def test_the_doctor_says_what_it_may_not_look_at(hdfs_server: HdfsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    table = HdfsTable(hdfs_server)
    table.write("t/part-0")
    prepared(table)
    table.chmod("_grebe/t", 0o700)
    monkeypatch.setenv("HADOOP_USER_NAME", "somebody-else")
    ran = CliRunner().invoke(main, ["--json", "doctor", table.uri("t")])
    found = next(one for one in json.loads(ran.stdout) if one["check"] == "access")
    assert found["result"] == "missing"
    assert "NO_PERMISSION" in found["advice"]


def test_the_folder_of_all_indexes_is_as_open_as_that_of_the_tables(hdfs_server: HdfsServer) -> None:
    table = HdfsTable(hdfs_server)
    table.write("t/part-0", 0o600)
    table.chmod("", 0o1777)
    prepared(table)
    assert table.client.get_file_info(f"/{table.lake}/_grebe").permission == 0o1777
    assert table.mode("_grebe/t") == 0o700
