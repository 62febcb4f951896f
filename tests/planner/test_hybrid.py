"""What is read from the copy, what directly, and what is left out: every row of the query's files exactly once."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from grebe.files import FileIds
from grebe.planner.hybrid import Coverage, coverage
from tests.planner.lake import MB, Ask, Source, covering

FILES = 12
TABLE = Source("t", {"a": "long"}, 1200, FILES * MB, files=FILES)
ids = st.frozensets(st.integers(0, FILES - 1))


def covered(listed: frozenset[int], inside: frozenset[int], dormant: frozenset[int], unregistered: int = 0) -> Coverage:
    ask = Ask()
    ask.scan(
        TABLE,
        ["a"],
        listed=FileIds.of(listed),
        listed_bytes=len(listed) * MB,
        unregistered_files=unregistered,
        unregistered_bytes=unregistered * MB,
    )
    copy = covering(TABLE, "i", ["a"]).copy
    assert copy is not None
    copy = replace(copy, covered=FileIds.of(inside), dormant=FileIds.of(dormant))
    return coverage(ask.relations[0], TABLE.known, copy)


@given(ids, ids, ids, st.integers(0, 2))
def test_every_file_of_the_query_is_read_once(
    listed: frozenset[int], inside: frozenset[int], dormant: frozenset[int], unregistered: int
) -> None:
    dormant -= inside
    found = covered(listed, inside, dormant, unregistered)
    served, dropped = set(found.served), set(found.drop)
    assert served == listed & inside
    # The content holds the rows of covered and dormant files: what is not dropped is served.
    assert (inside | dormant) - dropped == served
    assert found.direct_files == len(listed - served) + unregistered
    assert found.direct_bytes == found.direct_files * MB
    assert found.exact == (listed == inside and not dormant and not unregistered)


@given(ids, ids, ids)
def test_shares_are_of_bytes(listed: frozenset[int], inside: frozenset[int], dormant: frozenset[int]) -> None:
    dormant -= inside
    found = covered(listed, inside, dormant)
    held = inside | dormant
    assert found.appended == (len(listed - inside) / len(listed) if listed else 0.0)
    assert found.deleted == (len(held - listed) / len(held) if held - listed else 0.0)


def test_a_dormant_file_that_the_query_reads_is_read_directly_and_dropped_from_the_copy() -> None:
    found = covered(frozenset({0, 1}), frozenset({0}), frozenset({1}))
    assert found.drop == FileIds.of([1])
    assert found.direct_files == 1
    assert found.deleted == 0.0
