"""Several processes refresh, optimize, delete, restore and query one table at once, while the network loses and doubles requests.

What each of them did and saw, and when, is compared with the log afterwards: every operation is in it exactly once or not at all,
in an order that agrees with the clock they share, and every query saw one state of it.
"""

import itertools
import json
import multiprocessing
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grebe
from grebe.clock import SYSTEM
from grebe.errors import Conflict, GrebeError, WrongState
from grebe.indexes.lookup.spec import Lookup
from grebe.log.commit import Log
from grebe.log.entry import Entry, IndexDeleted, IndexRestored, OperationBegun, OperationEnded
from grebe.log.snapshot import history
from grebe.maintenance.delete import delete, restore
from grebe.session.lake_table import LakeTable
from grebe.store.opening import open_store
from testbed.proxy import SOME_OF_EACH, FaultProxy, Step
from testbed.s3 import S3Server
from testbed.spark import use_s3
from tests.maintenance.crash_child import attached, call_back

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("crashes")]
ROWS = 50
"""Of each file: those of file n have the ids from n * ROWS on."""
LOST = (Conflict, WrongState)
"""What a race may end with, for whoever comes second."""
LONGEST = 900.0


@dataclass(frozen=True)
class Scene:
    table: str
    location: str
    sound: Mapping[str, str]
    """Options of the store; by these nothing goes wrong."""
    faulty: Mapping[str, str]
    gateway: tuple[int, str]

    def newest(self) -> int:
        return Log(open_store(self.location, self.sound)).open().newest.number


@dataclass(frozen=True)
class Call:
    """What a process did, between two moments of the clock of this machine and two numbers of the log."""

    pid: int
    verb: str
    began: float
    ended: float
    outcome: str
    saw: dict[str, Any] = field(default_factory=dict)


def wrote(scene: Scene, number: int) -> dict[str, Any]:
    """A file, all at once."""
    hidden = Path(scene.table) / f"_{number}"
    pq.write_table(pa.table({"id": pa.array(range(number * ROWS, (number + 1) * ROWS), pa.int64())}), hidden)
    hidden.rename(Path(scene.table) / f"{number:03d}.parquet")
    return {"file": number}


def queried(scene: Scene) -> dict[str, Any]:
    """How many rows of each file were found, the state that the query was planned on, and what it says of the index `j`."""
    opened = grebe.open(scene.table, location=scene.location, storage_options=scene.faulty)
    found = opened.get_many("id", [number * ROWS + 7 for number in range(40)])["id"].to_pylist()
    answer = opened.files("id = 7")
    states = {info.name: info.state for info in opened.indexes()}
    return {"files": [number // ROWS for number in found], "version": answer.log_version, "j": states["j"]}


def acts(scene: Scene, role: str) -> list[tuple[str, Callable[[], dict[str, Any] | None]]]:
    """What a process of this role does again and again, each by a chance of its own."""
    if role == "asks":
        return [("query", lambda: queried(scene))]
    if role == "deletes":
        log = Log(open_store(scene.location, scene.faulty)).open()
        return [("delete", lambda: delete(log, "j")), ("restore", lambda: restore(log, "j"))]
    table = LakeTable(attached(*scene.gateway), scene.table, location=scene.location.replace("s3://", "s3a://"))
    if role == "refreshes":
        numbers = itertools.count(2)
        return [
            ("append", lambda: wrote(scene, next(numbers))),
            ("refresh", lambda: _said(table.refresh("i"))),
            ("append", lambda: wrote(scene, next(numbers))),
            ("refresh", lambda: _said(table.refresh())),
        ]
    return [
        ("optimize", lambda: _said(table.optimize("i", mode="full"))),
        ("refresh", lambda: _said(table.refresh("i"))),
    ]


def _said(infos: list[Any]) -> dict[str, Any]:
    return {"changed": len(infos)}


def racing(scene: Scene, role: str, rounds: int, barrier: Barrier, told: str) -> None:
    """The life of a process; ends without a word to the JVM, which is not its own."""
    code = 1
    try:
        doing = acts(scene, role)
        chance = random.Random(role)
        barrier.wait(LONGEST)
        calls = []
        for verb, act in itertools.islice(itertools.cycle(doing), rounds):
            SYSTEM.sleep(chance.random() * 0.2)
            calls.append(called(verb, act))
        Path(told).write_text(json.dumps([asdict(call) for call in calls]), encoding="utf-8")
        code = 0
    finally:
        os._exit(code)


def called(verb: str, act: Callable[[], dict[str, Any] | None]) -> Call:
    began = SYSTEM.monotonic()
    try:
        saw, outcome = act() or {}, "done"
    except LOST as lost:
        saw, outcome = {}, lost.code
    except GrebeError as problem:
        saw, outcome = {"said": str(problem)}, f"failed: {problem.code}"
    return Call(os.getpid(), verb, began, SYSTEM.monotonic(), outcome, saw)


@pytest.fixture
def scene(spark: "SparkSession", s3_server: S3Server, proxy: FaultProxy, tmp_path: Path) -> Iterator[Scene]:
    """Two indexes; the log is on S3, and all that Grebe asks of it goes through the proxy, in every process."""
    use_s3(spark, s3_server)
    configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()
    # What Spark itself writes is not what is tested here.
    configuration.set(f"fs.s3a.bucket.{s3_server.bucket}.endpoint", s3_server.endpoint)
    configuration.set("fs.s3a.endpoint", proxy.endpoint)
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    faulty = {**s3_server.storage_options, "endpoint": proxy.endpoint}
    made = Scene(
        str(tmp_path / "t"),
        s3_server.uri(SYSTEM.new_id()),
        s3_server.storage_options,
        faulty,
        (gateway.gateway_parameters.port, gateway.gateway_parameters.auth_token),
    )
    Path(made.table).mkdir()
    for number in range(2):
        wrote(made, number)
    table = lake_table(made, spark)
    table.create(Lookup("i", on="id"), Lookup("j", on="id"))
    yield made
    use_s3(spark, s3_server)
    configuration.unset(f"fs.s3a.bucket.{s3_server.bucket}.endpoint")
    call_back(spark)


def lake_table(scene: Scene, spark: "SparkSession") -> LakeTable:
    return LakeTable(spark, scene.table, location=scene.location.replace("s3://", "s3a://"))


def raced(scene: Scene, rounds: Mapping[str, int], folder: Path) -> list[Call]:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(len(rounds))
    told = {role: folder / f"{role}.json" for role in rounds}
    processes = [
        context.Process(target=racing, args=(scene, role, count, barrier, str(told[role])), daemon=True)
        for role, count in rounds.items()
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(LONGEST)
        assert process.exitcode == 0, "a racing process failed; its traceback is above"
    return [Call(**call) for file in told.values() for call in json.loads(file.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(
    "rounds",
    [
        {"refreshes": 8, "optimizes": 6, "deletes": 16, "asks": 8},
        pytest.param({"refreshes": 60, "optimizes": 60, "deletes": 200, "asks": 80}, marks=pytest.mark.soak),
    ],
    ids=["short", "long"],
)
def test_whatever_races_every_commit_is_there_once_and_in_an_order_that_all_agree_on(
    spark: "SparkSession", scene: Scene, proxy: FaultProxy, tmp_path: Path, rounds: dict[str, int]
) -> None:
    surely = [Step(fault, "GET" if fault == "cut short" else "PUT IF ABSENT") for fault in SOME_OF_EACH]
    proxy.plan(surely, seed=11, rates=SOME_OF_EACH)
    first = scene.newest()
    calls = raced(scene, rounds, tmp_path)
    met = {seen.fault for seen in proxy.seen() if seen.fault}
    proxy.plan()
    assert met == set(SOME_OF_EACH), "a fault that never happened tested nothing"
    assert [call for call in calls if call.outcome.startswith("failed")] == []
    log = Log(open_store(scene.location, scene.sound)).open()
    entries = [entry for entry in history(log.store, log.newest.number) if entry.number > first]
    require_each_once(entries, calls)
    require_real_time_order(entries, calls)
    require_queries_of_one_state(entries, calls)
    assert not log.state.operations
    table = lake_table(scene, spark)
    if log.state.indexes["j"].state == "DELETED":
        table.restore("j")
    assert {info.files_stale for info in table.refresh()} == {0}
    assert table.verify(deep=True).ok


def require_each_once(entries: list[Entry], calls: list[Call]) -> None:
    """Transactions and operations occur once; those that were reported done were committed, those reported lost were not."""
    assert [count for count in Counter(entry.id for entry in entries).values() if count > 1] == []
    changes = [change for entry in entries for change in entry.changes]
    begun = Counter(change.id for change in changes if isinstance(change, OperationBegun))
    ended = Counter(change.id for change in changes if isinstance(change, OperationEnded))
    assert set(begun.values()) == {1}
    assert begun == ended
    done = Counter((call.pid, call.verb) for call in calls if call.outcome == "done" and changes_the_log(call))
    committed = Counter(operation[:2] for operation in operations(entries) if operation[2])
    assert committed == done
    assert len(committed) >= 4
    overlapping = sum(a[3] < b[3] < a[4] for a, b in itertools.permutations(operations(entries), 2))
    assert overlapping, "nobody ever met anybody: this tested nothing"


def operations(entries: list[Entry]) -> list[tuple[int, str, bool, int, int]]:
    """Of each: the process, the verb, whether it was committed, and the numbers of its first and last entry; in order of these."""
    begun: dict[str, tuple[int, str, int]] = {}
    found = []
    for entry in entries:
        for change in entry.changes:
            if isinstance(change, OperationBegun):
                begun[change.id] = (entry.writer.pid, str(change.verb), entry.number)
            elif isinstance(change, OperationEnded):
                pid, verb, number = begun[change.id]
                found.append((pid, verb, change.committed, number, entry.number))
    return sorted(found, key=lambda operation: operation[3])


def changes_the_log(call: Call) -> bool:
    return call.verb not in ("append", "query") and call.saw.get("changed") != 0


def placed(entries: list[Entry], calls: list[Call]) -> list[tuple[Call, int, int]]:
    """Calls that were done, with the numbers of their first and last entry: a process does one after the other."""
    numbers: dict[tuple[int, str], list[tuple[int, int]]] = {}
    for pid, verb, committed, begun, ended in operations(entries):
        if committed:
            numbers.setdefault((pid, verb), []).append((begun, ended))
    in_order = sorted(
        (call for call in calls if call.outcome == "done" and changes_the_log(call)), key=lambda call: call.began
    )
    return [(call, *numbers[call.pid, call.verb].pop(0)) for call in in_order]


def require_real_time_order(entries: list[Entry], calls: list[Call]) -> None:
    """What was done before something else began stands before it in the log."""
    for (one, _, last), (other, first, _) in itertools.permutations(placed(entries, calls), 2):
        assert not one.ended <= other.began or last < first


def require_queries_of_one_state(entries: list[Entry], calls: list[Call]) -> None:
    """A query saw a state of the log between those that there were before and after it, and exactly the files that there were."""
    made = placed(entries, calls)
    appended = [(-1.0, -1.0, number) for number in range(2)]
    appended += [(call.began, call.ended, call.saw["file"]) for call in calls if call.verb == "append"]
    queries = [call for call in calls if call.verb == "query"]
    assert queries
    for query in queries:
        version = query.saw["version"]
        assert version >= max((last for call, _, last in made if call.ended <= query.began), default=0)
        assert version < min((first for call, first, _ in made if call.began >= query.ended), default=version + 1)
        assert query.saw["j"] == state_of("j", entries, version)
        files = Counter(query.saw["files"])
        assert set(files.values()) == {1}, "a row is found once"
        assert {number for _, ended, number in appended if ended <= query.began} <= set(files)
        assert set(files) <= {number for began, _, number in appended if began <= query.ended}


def state_of(index: str, entries: list[Entry], version: int) -> str:
    """By the log alone, up to this entry."""
    state = "ACTIVE"
    for entry in entries:
        for change in entry.changes:
            if entry.number <= version and isinstance(change, IndexDeleted | IndexRestored) and change.name == index:
                state = "DELETED" if isinstance(change, IndexDeleted) else "ACTIVE"
    return state
