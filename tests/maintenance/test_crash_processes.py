"""Real processes are killed in the midst of a verb, on disk and on S3: whoever comes next notices nothing.

Two writes of each verb on disk and one on S3, taken by a seed; `make soak` kills at every one.
"""

import io
import random
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grebe
from grebe.clock import SYSTEM
from grebe.errors import IndexExists, WrongState
from grebe.indexes.lookup.spec import Lookup
from grebe.store.opening import open_store
from grebe.store.protocol import Store
from testbed.s3 import S3Server
from testbed.spark import use_s3
from tests.maintenance.crash_child import (
    WITH_SPARK,
    WITHOUT_SPARK,
    Children,
    Task,
    call_back,
    children,
    lake_table,
    log_of,
)
from tests.maintenance.crash_child import carry_out as carry_out_without_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("crashes")]

FEWEST_WRITES = {
    "create": 11,
    "refresh full": 11,
    "refresh incremental": 11,
    "refresh quick": 8,
    "optimize quick": 8,
    "optimize full": 8,
    "repair": 8,
    "delete": 6,
    "restore": 6,
    "vacuum": 10,
    "cancel": 2,
}
"""What each verb writes to the store at least, by itself; what Spark writes is not counted."""
DONE = {"create": IndexExists, "delete": WrongState, "restore": WrongState}


@dataclass(frozen=True)
class Scene:
    """A table and a log that is as it should be, to be copied for every death."""

    task: Task
    store: Store
    spark: "SparkSession"
    ids: frozenset[int] = field(repr=False)

    def copied(self, verb: str, dies_at: int) -> Task:
        location = f"{self.task.location}-{SYSTEM.new_id()}"
        task = replace(self.task, verb=verb, location=location, dies_at=dies_at)
        target = open_store(location, task.storage_options)
        for one in self.store.list(""):
            target.put(one.path, self.store.get(one.path))
        return task

    def answers(self, task: Task) -> bool:
        """With whatever index there is: of all rows, and of some keys."""
        opened = grebe.open(task.table, location=task.location, storage_options=task.storage_options)
        keys = [3, 90_050, 100_005, 110_000, 110_001, 999_999]
        found = opened.get_many("id", keys)["id"].to_pylist()
        return sorted(found) == sorted(self.ids & set(keys)) and opened.count() == len(self.ids)


def parquet(ids: range) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), sink)
    return sink.getvalue()


def scene(spark: "SparkSession", task: Task) -> Scene:
    """`i` has three runs and is stale, `gone` is deleted."""
    data = open_store(task.table, task.storage_options)
    data.put("a.parquet", parquet(range(90_000)))
    table = lake_table(task, spark)
    table.create(Lookup("i", on="id"), Lookup("gone", on="id"))
    for name, more in (("b", range(90_000, 100_000)), ("c", range(100_000, 101_000))):
        data.put(f"{name}.parquet", parquet(more))
        table.refresh("i")
    table.delete("gone")
    data.delete("b.parquet")
    data.put("d.parquet", parquet(range(110_000, 110_002)))
    ids = frozenset((*range(90_000), *range(100_000, 101_000), 110_000, 110_001))
    return Scene(task, open_store(task.location, task.storage_options), spark, ids)


@pytest.fixture(scope="module")
def killed(spark: "SparkSession") -> Iterator[Children]:
    with children() as started:
        yield started
    call_back(spark)


def gateway(spark: "SparkSession") -> tuple[int, str]:
    parameters = spark.sparkContext._gateway.gateway_parameters  # type: ignore[union-attr]  # it is running
    return parameters.port, parameters.auth_token


@pytest.fixture(scope="module")
def on_disk(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Scene:
    folder: Path = tmp_path_factory.mktemp("crashes")
    return scene(spark, Task("", f"file://{folder}/t", f"file://{folder}/log", {}, 0, gateway(spark)))


@pytest.fixture(scope="module")
def on_s3(spark: "SparkSession", s3_server: S3Server) -> Scene:
    use_s3(spark, s3_server)
    root = s3_server.uri(SYSTEM.new_id())
    return scene(spark, Task("", f"{root}/t", f"{root}/log", s3_server.storage_options, 0, gateway(spark)))


def require_survived(there: Scene, killed: Children, verb: str, dies_at: int, scratch: str = "") -> bool:
    """Whether it was killed at all: it may have fewer writes. `scratch`: it had a Spark of its own."""
    task = there.copied(verb, dies_at)
    task = replace(task, gateway=None, scratch=scratch) if scratch else task
    _before(there, killed, task)
    ended = killed.run(task)
    assert ended in (0, -signal.SIGKILL)
    assert there.answers(task)
    _again(there, task)
    assert there.answers(task)
    table = lake_table(task, there.spark)
    table.vacuum()
    state, store = log_of(task).state, open_store(task.location, task.storage_options)
    assert not state.operations
    used = state.content_paths | {segment.path for segment in state.segments}
    assert {one.path for folder in ("data", "files") for one in store.list(folder)} == used
    verified = table.verify()
    assert verified.ok
    assert verified == grebe.open(task.table, location=task.location, storage_options=task.storage_options).verify()
    assert there.answers(task)
    return ended != 0


def _before(there: Scene, killed: Children, task: Task) -> None:
    if task.verb == "cancel":
        assert killed.run(replace(task, verb="begin", dies_at=0)) == 0
    if task.verb == "repair":
        lost = log_of(task).state.indexes["i"].content[0].path
        open_store(task.location, task.storage_options).delete(lost)


def _again(there: Scene, task: Task) -> None:
    """Whatever was killed is done once more by this process; it may have been done already."""
    try:
        if task.verb in WITHOUT_SPARK:
            carry_out_without_spark(task)
        else:
            WITH_SPARK[task.verb](lake_table(task, there.spark))
    except tuple(DONE.values()) as done:
        if type(done) is not DONE.get(task.verb):
            raise


@pytest.mark.parametrize("where", ["on_disk", "on_s3"])
@pytest.mark.parametrize("verb", FEWEST_WRITES)
def test_a_process_killed_in_the_midst_of_a_verb_is_not_missed(
    request: pytest.FixtureRequest, killed: Children, verb: str, where: str
) -> None:
    there: Scene = request.getfixturevalue(where)
    writes, chance = FEWEST_WRITES[verb], random.Random(f"{verb} {where}")
    points = [chance.randint(1, writes // 2), chance.randint(writes // 2 + 1, writes)]
    for dies_at in points if where == "on_disk" else [chance.choice(points)]:
        assert require_survived(there, killed, verb, dies_at), "it has fewer writes than this test takes it to have"


@pytest.mark.soak
@pytest.mark.parametrize("where", ["on_disk", "on_s3"])
@pytest.mark.parametrize("verb", FEWEST_WRITES)
def test_a_process_may_be_killed_at_every_write(
    request: pytest.FixtureRequest, killed: Children, verb: str, where: str
) -> None:
    there: Scene = request.getfixturevalue(where)
    dies_at = 1
    while require_survived(there, killed, verb, dies_at):
        dies_at += 1
    assert dies_at > FEWEST_WRITES[verb]


@pytest.mark.soak
@pytest.mark.parametrize("verb", WITH_SPARK)
def test_a_process_may_be_killed_together_with_its_spark(
    on_disk: Scene, killed: Children, tmp_path: Path, verb: str
) -> None:
    writes = FEWEST_WRITES[verb]
    for dies_at in (writes // 2, writes):
        assert require_survived(on_disk, killed, verb, dies_at, str(tmp_path))
