"""Older versions of an index: when they are looked at, which of them is taken, and what is said of it."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from grebe.config import Config
from grebe.files import FileIds
from grebe.planner.choose import choose
from grebe.planner.decision import Decision, FromMetadata, Narrow, StandIn
from grebe.planner.explain import Explanation
from grebe.planner.query import Aggregate, Answerable, Filter, Node
from grebe.planner.reasons import Code
from grebe.planner.tables import KnownIndex, OlderVersion
from tests.planner.lake import MB, Ask, Scanned, Source, covering
from tests.planner.pruners import Asked, pruning

FILES = 500
EVENTS = Source("events", {"id": "long", "customer": "long", "text": "string"}, 10_000_000, FILES * MB, files=FILES)
VERSIONS = 50
A_VERSION = FILES // VERSIONS


class Opened:
    """Which versions were opened, by the entry that replaced them."""

    def __init__(self) -> None:
        self.entries: list[int] = []

    def __call__(self, made: KnownIndex) -> KnownIndex:
        assert made.replaced_at is not None
        self.entries.append(made.replaced_at)
        return made


def with_older(current: KnownIndex, older: Iterable[KnownIndex], opened: Opened | None = None) -> KnownIndex:
    """The newest first; version and entry follow from the place."""
    found = list(older)
    versions = []
    for place, one in enumerate(found):
        number = 2 * (len(found) - place)
        made = replace(one, version=number, replaced_at=number + 1)
        role = one.copy or one.pruner
        assert role is not None
        versions.append(OlderVersion(number, number + 1, role.covered, role.bytes, partial(opened or Opened(), made)))
    return replace(current, older=tuple(versions), version=999)


def copies(covered: Iterable[int]) -> KnownIndex:
    return covering(EVENTS, "by_id", ["id"], ["customer"], covered=covered, between=(0, 10_000))


def prunes(covered: Iterable[int], found: Iterable[int] = ()) -> KnownIndex:
    return pruning(EVENTS, "by_id", "id", found, covered=covered)


def decided(
    index: KnownIndex, files: Iterable[int], above: Callable[[Scanned], Node] | None = None, where: str = "id = 7"
) -> Decision:
    ask = Ask()
    listed = FileIds.of(files)
    scan = ask.scan(
        EVENTS.having(index),
        ["id", "customer"],
        where,
        listed=listed,
        listed_bytes=len(listed) * MB,
        whole=False,
    )
    query = ask.query(Filter(scan.node, 1) if above is None else above(scan))
    return choose(query, ask.tables, Config(), inquiry=Asked())


def rewritten(version: int) -> range:
    """The files of a version of a table that is rewritten as a whole each time."""
    return range(version * A_VERSION, (version + 1) * A_VERSION)


def history(make: Callable[[Iterable[int]], KnownIndex], opened: Opened | None = None) -> KnownIndex:
    return with_older(make(rewritten(49)), [make(rewritten(version)) for version in range(48, -1, -1)], opened)


def test_of_fifty_versions_the_one_of_these_files_is_read() -> None:
    for version in range(VERSIONS):
        opened = Opened()
        index = history(copies, opened)
        [choice] = decided(index, rewritten(version)).choices
        assert isinstance(choice, StandIn)
        assert choice.copy.covered == FileIds.of(rewritten(version))
        assert (choice.direct, choice.drop) == (False, FileIds.of([]))
        expected = [] if version == 49 else [2 * (version + 1) + 1]
        assert opened.entries == expected
        assert choice.version == (None if version == 49 else 2 * (version + 1))


def test_of_fifty_versions_the_one_of_these_files_is_asked() -> None:
    for version in (0, 1, 25, 48):
        index = history(lambda files: prunes(files, [min(files)]))
        [choice] = decided(index, rewritten(version)).choices
        assert isinstance(choice, Narrow)
        assert choice.files == 1
        assert choice.without == FileIds.of(rewritten(version)[1:])
        assert choice.versions == {"by_id": 2 * (version + 1)}


def test_nothing_is_opened_for_files_that_the_current_version_holds() -> None:
    opened = Opened()
    index = with_older(copies(range(100)), [copies(range(200)), copies(range(80, 120))], opened)
    [choice] = decided(index, range(50, 100)).choices
    assert isinstance(choice, StandIn)
    assert choice.version is None
    assert opened.entries == []


def test_nothing_is_opened_that_knows_none_of_the_files() -> None:
    opened = Opened()
    index = with_older(copies(range(100)), [copies(range(100, 200))], opened)
    decided(index, range(400, 500))
    assert opened.entries == []


def test_of_two_that_hold_all_the_smaller_is_read() -> None:
    index = with_older(copies(range(10)), [copies(range(100, 400)), copies(range(95, 210)), copies(range(90, 500))])
    [choice] = decided(index, range(100, 200), where="customer = 3").choices
    assert isinstance(choice, StandIn)
    assert choice.copy.covered == FileIds.of(range(95, 210))


def test_the_current_version_is_read_where_it_is_cheaper() -> None:
    """It lacks one file of many; the older one holds it, and rows of many more files that are none of the query's."""
    index = with_older(copies(range(100, 200)), [copies(range(500))])
    [choice] = decided(index, range(99, 200), where="customer = 3").choices
    assert isinstance(choice, StandIn)
    assert choice.version is None
    assert choice.direct


def test_of_versions_that_know_as_much_the_current_one_is_asked() -> None:
    index = with_older(prunes(range(50), [3]), [prunes(range(50, 100), [60])])
    [choice] = decided(index, range(100)).choices
    assert isinstance(choice, Narrow)
    assert (choice.versions, choice.uncovered) == ({}, 50)


def test_an_older_version_counts_the_rows_of_its_files() -> None:
    index = history(copies)
    decision = decided(
        index, rewritten(7), lambda scan: Aggregate(scan.node, (), {}, ("count(1)",), (Answerable("count"),)), where=""
    )
    [choice] = decision.choices
    assert isinstance(choice, FromMetadata)
    assert choice.version == 16
    assert choice.values == (10_000_000 // VERSIONS,)


def test_an_older_version_that_was_read_otherwise_is_not_used() -> None:
    other = replace(EVENTS, columns={**EVENTS.columns, "id": "string"}, indexes=())
    older = covering(other, "by_id", ["id"], ["customer"], covered=range(100, 200))
    decision = decided(with_older(copies(range(100)), [older]), range(100, 200))
    assert decision.choices == ()
    assert [reason.code for reason in decision.reasons] == [Code.NO_COMMON_FILES]


def test_an_index_out_of_use_has_no_older_versions_either() -> None:
    opened = Opened()
    gone = replace(copies(range(10)), state="DELETED", copy=None)
    decision = decided(with_older(gone, [copies(range(100))], opened), range(100))
    assert (decision.choices, opened.entries) == ((), [])


def test_an_explanation_names_the_older_version() -> None:
    for make in (copies, lambda files: prunes(files, [min(files)])):
        explanation = Explanation(decided(history(make), rewritten(3)))
        assert "of by_id the older version 8, which knows files that the current one does not" in str(explanation)
        assert explanation.to_dict()["choices"][0]["older_versions"] == {"by_id": 8}
        assert explanation.used == ("by_id",)
    assert "older version" not in str(Explanation(decided(history(copies), rewritten(49))))
