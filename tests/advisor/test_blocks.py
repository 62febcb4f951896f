"""Blocks of observed queries: many writers, no lock, and whatever is broken is left out."""

import io
import logging
import multiprocessing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grebe.advisor.workload import blocks
from grebe.advisor.workload.observed import from_table, to_table
from grebe.advisor.workload.reading import Recorded
from grebe.clock import SYSTEM, SimulatedClock
from grebe.indexes.content.sealed import sealed
from grebe.store.local import LocalStore
from grebe.store.memory import MemoryStore, Moment
from grebe.store.protocol import OutcomeUnknown
from tests.advisor.made import observed


def numbers(table: pa.Table) -> list[int]:
    return [int(query, 16) for query in table["query"].to_pylist()]


def test_what_is_written_comes_back() -> None:
    store, queries = MemoryStore(), [observed(number) for number in range(5)]
    blocks.write(store, to_table(queries), SYSTEM)
    assert from_table(blocks.read(store).queries) == queries


def test_blocks_of_many_clients_are_one_workload_in_the_order_of_time() -> None:
    store = MemoryStore()
    blocks.write(store, to_table([observed(3), observed(1)]), SYSTEM)
    blocks.write(store, to_table([observed(2), observed(0)]), SYSTEM)
    assert numbers(blocks.read(store).queries) == [0, 1, 2, 3]


def test_a_query_in_two_blocks_is_one() -> None:
    store = MemoryStore()
    blocks.write(store, to_table([observed(1), observed(2)]), SYSTEM)
    blocks.write(store, to_table([observed(2), observed(3)]), SYSTEM)
    assert numbers(blocks.read(store).queries) == [1, 2, 3]


def test_a_lost_reply_makes_no_second_block() -> None:
    lost = iter([True, False])

    def losing(moment: Moment, call: str, path: str) -> None:
        if moment == "after" and call == "put_if_absent" and next(lost):
            raise OutcomeUnknown("the reply is lost")

    store = MemoryStore(script=losing)
    blocks.write(store, to_table([observed(1)]), SYSTEM)
    assert len(blocks.listed(store)) == 1


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 100, -1])
def test_a_block_cut_short_is_left_out_and_told(length: int, caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    whole = blocks.write(store, to_table([observed(1)]), SYSTEM)
    store.put(f"{whole[:-36]}{'0' * 32}.gix", store.get(whole)[:length])
    with caplog.at_level(logging.WARNING):
        found = Recorded((store.uri,), lambda place: store).queries()
    assert numbers(found) == [1]
    assert "event=workload_block_damaged" in caplog.text


def test_a_flipped_bit_leaves_the_block_out() -> None:
    store = MemoryStore()
    path = blocks.write(store, to_table([observed(1)]), SYSTEM)
    data = bytearray(store.get(path))
    data[len(data) // 2] ^= 1
    store.put(path, bytes(data))
    content = blocks.read(store)
    assert content.queries.num_rows == 0
    assert content.damaged == (path,)


def test_a_damaged_block_hides_none_of_those_it_has_replaced() -> None:
    store = MemoryStore()
    first = blocks.write(store, to_table([observed(1)]), SYSTEM)
    merged = blocks.write(store, to_table([observed(1)]), SYSTEM, [first])
    store.put(merged, store.get(merged)[:-1])
    assert numbers(blocks.read(store).queries) == [1]


def test_what_was_replaced_is_not_read_again() -> None:
    store = MemoryStore()
    paths = [blocks.write(store, to_table([observed(number)]), SYSTEM) for number in range(3)]
    merged = blocks.write(store, to_table([observed(number) for number in range(3)]), SYSTEM, paths)
    read: list[str] = []

    def reading(moment: Moment, call: str, path: str) -> None:
        if moment == "before" and call == "get":
            read.append(path)

    store.script = reading
    assert numbers(blocks.read(store).queries) == [0, 1, 2]
    assert read == [merged]


def test_what_else_lies_there_is_no_block() -> None:
    store = MemoryStore()
    store.put("workload/key", b"secret")
    store.put("workload/notes.txt", b"hello")
    assert blocks.read(store).queries.num_rows == 0


def test_blocks_that_go_while_they_are_read_are_found_in_what_replaced_them() -> None:
    """As with `vacuum_retention_seconds` = 0: between the listing and the reading all blocks were merged into one, and removed."""
    store = MemoryStore()
    paths = [blocks.write(store, to_table([observed(number)]), SYSTEM) for number in range(3)]

    def merging(moment: Moment, call: str, path: str) -> None:
        if moment == "after" and call == "list":
            store.script = lambda *_: None
            blocks.write(store, to_table([observed(number) for number in range(3)]), SYSTEM, paths)
            for each in paths:
                store.delete(each)

    store.script = merging
    assert numbers(blocks.read(store).queries) == [0, 1, 2]


def test_a_later_version_may_add_columns_and_an_older_one_lack_them() -> None:
    store = MemoryStore()
    table = to_table([observed(1)])
    path = blocks.write(store, table, SimulatedClock())
    more = table.append_column("weather", pa.array(["fine"])).drop_columns(["limit"])
    buffer = io.BytesIO()
    pq.write_table(more, buffer)
    store.put(path, sealed(buffer.getvalue()))
    assert blocks.read(store).queries.equals(table)


def _write_many(folder: str, first: int) -> None:
    store = LocalStore(Path(folder))
    for number in range(first, first + 20):
        blocks.write(store, to_table([observed(number)]), SYSTEM)


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=_write_many, args=(str(tmp_path), first)) for first in (0, 20)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert numbers(blocks.read(LocalStore(tmp_path)).queries) == list(range(40))
