"""Indexes follow a stream: after each micro-batch they cover what it wrote, and the stream never notices."""

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grebe
from grebe.errors import InvalidConfig, Unsupported
from grebe.session.lake import Lake
from grebe.session.lake_table import LakeTable
from tests.lakes.formats import HERE
from tests.spark.served import write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = pytest.mark.spark
LONG = 120.0
LAKES = [name for name in ("delta", "iceberg") if name in HERE]


def numbered(start: int, stop: int) -> pa.Table:
    return pa.table(
        {
            name: pa.array(numbers, pa.int64())
            for name, numbers in (("id", range(start, stop)), ("few", [number % 10 for number in range(start, stop)]))
        }
    )


class Stream:
    """Rows with the numbers from `next` on come in, as one batch each time."""

    def __init__(self, spark: "SparkSession", folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.queries: list[StreamingQuery] = []
        self.next = 0
        (folder / "in").mkdir()

    def arrive(self, rows: int = 100) -> None:
        draft = self.folder / "in" / f"_{self.next}"  # which Spark does not see
        pq.write_table(numbered(self.next, self.next + rows), draft)
        draft.rename(draft.with_name(f"{self.next}.parquet"))
        self.next += rows

    def writing(self, sink: Callable[[Any], "StreamingQuery"]) -> "StreamingQuery":
        frame = self.spark.readStream.schema("id BIGINT, few BIGINT").parquet(str(self.folder / "in"))
        query = sink(frame.writeStream.option("checkpointLocation", str(self.folder / "checkpoint")))
        self.queries.append(query)
        return query


@pytest.fixture
def stream(spark: "SparkSession", tmp_path: Path) -> Iterator[Stream]:
    made = Stream(spark, tmp_path)
    yield made
    for query in made.queries:
        query.stop()


@pytest.fixture
def lake(spark: "SparkSession") -> Iterator[Lake]:
    attached = grebe.attach(spark)
    yield attached
    attached.detach()


def appended_to(path: str) -> "Callable[[DataFrame, int], None]":
    return lambda frame, batch: frame.write.mode("append").parquet(path)


def plain(stream: Stream, lake: Lake) -> "tuple[LakeTable, StreamingQuery]":
    """A table of plain files with an index, and a stream that appends to it."""
    path = write(stream.folder / "out", numbered(-1_000, 0))
    table = lake.table(path)
    table.create(grebe.Lookup("by_id", on="id"))
    return table, stream.writing(lambda writer: writer.foreachBatch(appended_to(path)).start())


def found(lake: Lake, table: "DataFrame", number: int) -> tuple[int, list[str]]:
    """How many rows with this number, and the indexes that are used to find them."""
    asked = table.where(f"id = {number}")
    return asked.count(), lake.explain(asked).to_dict()["used"]


@pytest.mark.core
def test_after_every_batch_the_index_covers_what_it_wrote(stream: Stream, lake: Lake) -> None:
    table, query = plain(stream, lake)
    following = lake.refresh_on(query, table)
    for _ in range(2):
        stream.arrive()
        query.processAllAvailable()
        assert following.wait(LONG)
        (info,) = table.indexes()
        assert (info.rows, info.files_stale) == (1_000 + stream.next, 0)
    assert following.last_error is None
    assert following.refreshes >= 2
    done = following.refreshes
    assert following.wait(LONG)
    assert following.refreshes == done, "what is fresh is not refreshed again"


@pytest.mark.parametrize("lake_format", LAKES)
def test_the_table_of_a_lake_is_found_by_what_the_query_writes_to(stream: Stream, lake: Lake, lake_format: str) -> None:
    stream.arrive()
    name = f"ice.db.{stream.folder.name}"[:60].replace("-", "_")
    path = str(stream.folder / "out")
    if lake_format == "delta":
        query = stream.writing(lambda writer: writer.format("delta").start(path))
    else:
        stream.spark.sql(f"CREATE TABLE {name} (id BIGINT, few BIGINT) USING iceberg")
        query = stream.writing(lambda writer: writer.format("iceberg").toTable(name))
    query.processAllAvailable()
    table = lake.table(path if lake_format == "delta" else name)
    table.create(grebe.Lookup("by_id", on="id"))
    following = lake.refresh_on(query)
    stream.arrive()
    query.processAllAvailable()
    assert following.wait(LONG), following.last_error
    (info,) = table.indexes()
    assert (info.rows, info.files_stale) == (stream.next, 0)
    frame = stream.spark.read.format("delta").load(path) if lake_format == "delta" else stream.spark.table(name)
    assert found(lake, frame, stream.next - 1)[0] == 1


def test_batches_that_come_during_a_refresh_are_covered_by_one_later_refresh(
    stream: Stream, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, query = plain(stream, lake)
    begun, go_on, running = threading.Event(), threading.Event(), list[int]()
    refresh = table.refresh

    def slowly() -> object:
        running.append(1)
        assert len(running) == 1, "two at a time"
        begun.set()
        assert go_on.wait(LONG)
        try:
            return refresh()
        finally:
            running.clear()

    monkeypatch.setattr(table, "refresh", slowly)
    following = lake.refresh_on(query, table)
    stream.arrive()
    query.processAllAvailable()
    assert begun.wait(LONG)
    for _ in range(3):  # nobody waits for the refresh
        stream.arrive()
        query.processAllAvailable()
    go_on.set()
    assert following.wait(LONG)
    assert following.refreshes == 2
    assert table.index("by_id").files_stale == 0


def test_a_refresh_that_fails_is_told_of_once_and_the_stream_goes_on(
    stream: Stream, lake: Lake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table, query = plain(stream, lake)
    following = lake.refresh_on(query, table)

    def fail() -> object:
        raise grebe.Conflict("somebody was first", detail="LOST_RACE")

    with monkeypatch.context() as failing, caplog.at_level(logging.WARNING, "grebe.session"):
        failing.setattr(table, "refresh", fail)
        for _ in range(2):
            stream.arrive()
            query.processAllAvailable()
            assert not following.wait(LONG)
    assert isinstance(following.last_error, grebe.Conflict)
    assert [record.message for record in caplog.records].count("event=refresh_failed code=CONFLICT_LOST_RACE") == 1
    assert query.exception() is None
    assert following.wait(LONG), "it is tried again"
    assert following.last_error is None
    assert table.index("by_id").rows == 1_000 + stream.next


def test_nothing_is_refreshed_after_stop_and_the_query_goes_on(stream: Stream, lake: Lake) -> None:
    table, query = plain(stream, lake)
    following = lake.refresh_on(query, table)
    following.stop()
    stream.arrive()
    query.processAllAvailable()
    assert not following.wait(LONG)
    assert table.index("by_id").files_stale == 1
    assert query.isActive


def test_a_query_that_has_ended_is_followed_to_its_end(stream: Stream, lake: Lake) -> None:
    table, query = plain(stream, lake)
    stream.arrive()
    query.processAllAvailable()
    query.stop()
    following = lake.refresh_on(query, table, every=LONG)
    assert following.wait(LONG)
    following._thread.join(LONG)
    assert not following._thread.is_alive()
    assert table.index("by_id").files_stale == 0


def test_refreshes_keep_their_distance_but_nobody_waits_for_it(stream: Stream, lake: Lake) -> None:
    table, query = plain(stream, lake)
    stream.arrive()
    query.processAllAvailable()
    following = lake.refresh_on(query, table, every=10 * LONG)
    assert following.wait(LONG)
    stream.arrive()
    query.processAllAvailable()
    assert following.wait(LONG)
    assert table.index("by_id").files_stale == 0


@pytest.mark.core
def test_a_function_for_foreach_batch_refreshes_after_it_has_written(stream: Stream, lake: Lake) -> None:
    path = str(stream.folder / "out")

    @lake.refreshing(path)
    def write(frame: "DataFrame", batch: int) -> None:
        frame.write.mode("append").parquet(path)
        if batch == 0:
            lake.table(path).create(grebe.Covering("by_few", on="few", include=["id"]), grebe.Lookup("by_id", on="id"))

    query = stream.writing(lambda writer: writer.foreachBatch(write).start())
    for _ in range(3):
        stream.arrive()
        query.processAllAvailable()
        assert [(info.rows, info.files_stale) for info in lake.table(path).indexes()] == [(stream.next, 0)] * 2
        assert write.last_error is None


def test_a_batch_is_written_though_the_refresh_after_it_fails(stream: Stream, lake: Lake) -> None:
    path = str(stream.folder / "out")
    write = lake.refreshing(str(stream.folder / "nothing here"))(appended_to(path))
    query = stream.writing(lambda writer: writer.foreachBatch(write).start())
    stream.arrive()
    query.processAllAvailable()
    assert isinstance(write.last_error, grebe.TableNotFound)
    assert stream.spark.read.parquet(path).count() == stream.next


def test_a_query_that_does_not_say_what_it_writes_to_needs_a_name(stream: Stream, lake: Lake) -> None:
    _, query = plain(stream, lake)
    stream.arrive()
    query.processAllAvailable()
    following = lake.refresh_on(query)
    assert not following.wait(LONG)
    assert isinstance(following.last_error, Unsupported)
    assert following.last_error.code == "UNSUPPORTED_SINK"
    assert "refresh_on(query, table)" in str(following.last_error)


def test_a_distance_that_is_none_is_refused(stream: Stream, lake: Lake) -> None:
    query = stream.writing(lambda writer: writer.format("noop").start())
    for every in (0, -1, float("inf"), float("nan")):
        with pytest.raises(InvalidConfig, match="every="):
            lake.refresh_on(query, every=every)
