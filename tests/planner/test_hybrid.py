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


def covered(listed: frozenset[int], inside: frozenset[int], unregistered: int = 0) -> Coverage:
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
    return coverage(ask.relations[0], TABLE.known, replace(copy, covered=FileIds.of(inside)))


@given(ids, ids, st.integers(0, 2))
def test_every_file_of_the_query_is_read_once(
    listed: frozenset[int], inside: frozenset[int], unregistered: int
) -> None:
    found = covered(listed, inside, unregistered)
    served, dropped = set(found.served), set(found.drop)
    assert served == listed & inside
    # The content holds the rows of all these files: what is not dropped is served.
    assert inside - dropped == served
    assert found.direct_files == len(listed - served) + unregistered
    assert found.direct_bytes == found.direct_files * MB
    assert found.exact == (listed == inside and not unregistered)


@given(ids, ids)
def test_shares_are_of_bytes(listed: frozenset[int], inside: frozenset[int]) -> None:
    found = covered(listed, inside)
    assert found.appended == (len(listed - inside) / len(listed) if listed else 0.0)
    assert found.deleted == (len(inside - listed) / len(inside) if inside - listed else 0.0)
