"""Which indexes can serve a scan, and which check each of the others fails."""

from dataclasses import replace
from typing import Any

import pytest

from grebe.config import Config
from grebe.files import FileIds
from grebe.planner.candidates import Candidate, asked_of, candidate, serves
from grebe.planner.reasons import Code, Reason
from grebe.planner.tables import KnownIndex
from grebe.predicate.bind import bind
from grebe.predicate.parse import parse
from tests.planner.lake import MB, Ask, Source, covering

ORDERS = Source(
    "orders",
    {"key": "long", "customer": "long", "price": "double", "day": "date", "note": "string"},
    100_000,
    10 * MB,
    files=10,
)
INDEX = covering(ORDERS, "by_customer", ["customer"], ["price", "day"])


def checked(
    index: KnownIndex,
    columns: tuple[str, ...] = ("customer", "price"),
    where: str = "",
    config: Config | None = None,
    hints: dict[str, Any] | None = None,
    **facts: Any,
) -> Candidate | Reason:
    ask = Ask()
    ask.scan(ORDERS, columns, where, **facts)
    query = ask.query(**(hints or {}))
    return candidate(asked_of(query.relations[0]), ORDERS.known, index, query, config or Config())


def code(found: Candidate | Reason) -> str:
    assert isinstance(found, Reason)
    assert found.sentence
    return found.code


def accepted(found: Candidate | Reason) -> Candidate:
    assert isinstance(found, Candidate), found
    return found


def test_an_index_that_covers_all_files_and_columns_is_a_candidate() -> None:
    found = accepted(checked(INDEX))
    assert found.coverage.exact
    assert found.keep.tolist() == list(range(8))


def test_the_state_is_checked_before_all_else() -> None:
    deleted = covering(ORDERS, "i", ["customer"], state="DELETED", set_aside="lost")
    found = checked(deleted, ("note",), hints={"without": frozenset({"i"})})
    assert code(found) == Code.NOT_ACTIVE
    assert isinstance(found, Reason)
    assert (found.index, found.relation, dict(found.arguments)) == ("i", "orders", {"state": "DELETED"})


def test_an_index_that_was_set_aside_is_left_alone() -> None:
    assert code(checked(replace(INDEX, set_aside="a file is missing"))) == Code.SET_ASIDE


def test_a_kind_that_only_prunes_stands_in_for_nothing() -> None:
    assert code(checked(replace(INDEX, copy=None, kind="lookup"))) == Code.NO_STAND_IN


@pytest.mark.parametrize("hints", [{"only": frozenset({"other"})}, {"without": frozenset({"by_customer"})}])
def test_the_user_can_rule_an_index_out(hints: dict[str, Any]) -> None:
    assert code(checked(INDEX, hints=hints)) == Code.EXCLUDED
    accepted(checked(INDEX, hints={"only": frozenset({"BY_customer"})}))


def test_what_keeps_all_indexes_from_a_scan_is_the_reason_for_each() -> None:
    obstacle = Reason(Code.UNSUPPORTED_RELATION, "", {"what": "the same file twice"}, "orders")
    found = checked(INDEX, obstacle=obstacle)
    assert found == Reason(Code.UNSUPPORTED_RELATION, "by_customer", {"what": "the same file twice"}, "orders")


def test_another_reading_of_the_files_is_not_served() -> None:
    other = replace(ORDERS, format="csv", options={"header": "true", "sep": ";"})
    found = checked(INDEX, reading=other.reading)
    assert code(found) == Code.READ_DIFFERENTLY
    assert isinstance(found, Reason)
    assert found.arguments["differs"] == ["formats", "options header", "options sep"]
    assert ";" not in found.sentence


def test_a_column_of_another_type_is_not_served_unless_the_query_does_without_it() -> None:
    other = replace(ORDERS, columns={**ORDERS.columns, "price": "float"})
    found = checked(INDEX, reading=other.reading)
    assert code(found) == Code.COL_SCHEMA_MISMATCH
    assert isinstance(found, Reason)
    assert found.arguments["columns"] == ["price"]
    accepted(checked(INDEX, ("customer", "day"), reading=other.reading))


def test_a_column_that_the_index_lacks_is_named() -> None:
    found = checked(INDEX, ("customer", "note", "key"))
    assert code(found) == Code.MISSING_REQUIRED_COL
    assert isinstance(found, Reason)
    assert found.arguments["columns"] == ["key", "note"]


def test_a_query_that_needs_no_column_is_served_by_any_index() -> None:
    accepted(checked(INDEX, ()))


def test_fields_are_served_by_themselves_or_by_their_struct() -> None:
    copy = INDEX.copy
    assert copy is not None
    flat = replace(copy, columns={("a", "b"): "a.b", ("s",): "s"})
    assert serves(flat, ("a", "b"))
    assert serves(flat, ("a", "b", "c"))
    assert serves(flat, ("s", "x"))
    assert not serves(flat, ("a",))
    assert not serves(flat, ("a", "c"))


def test_a_partial_index_serves_what_implies_its_condition() -> None:
    partial = covering(ORDERS, "recent", ["customer"], ["price", "day"], where="day >= DATE '1995-01-01'")
    columns = ("customer", "day")
    accepted(checked(partial, columns, "day = DATE '1996-05-05'"))
    found = checked(partial, columns, "day >= DATE '1994-12-31'")
    assert code(found) == Code.PARTIAL_NOT_IMPLIED
    assert isinstance(found, Reason)
    assert found.arguments["columns"] == ["day"]
    assert "1995" not in found.sentence
    assert "1994" not in found.sentence


def test_an_index_of_other_files_is_of_no_use() -> None:
    assert code(checked(covering(ORDERS, "i", ["customer"], covered=[]), ("customer",))) == Code.NO_COMMON_FILES


def of_files(*numbers: int) -> dict[str, Any]:
    """A scan of just these files."""
    return {"listed": FileIds.of(numbers), "listed_bytes": len(numbers) * MB}


def test_appended_files_are_read_directly_up_to_the_limit() -> None:
    index = covering(ORDERS, "i", ["customer"], covered=range(8))
    found = accepted(checked(index, ("customer",)))
    assert found.coverage.direct_files == 2
    assert found.coverage.appended == pytest.approx(0.2)
    refused = checked(index, ("customer",), config=Config(hybrid_max_appended=0.1))
    assert code(refused) == Code.TOO_MUCH_APPENDED
    assert isinstance(refused, Reason)
    assert refused.arguments == {"share": pytest.approx(0.2), "limit": 0.1}


def test_files_that_were_never_registered_count_as_appended() -> None:
    found = accepted(checked(INDEX, unregistered_files=3, unregistered_bytes=1 * MB))
    assert (found.coverage.direct_files, found.coverage.direct_bytes) == (3, MB)


def test_gone_files_are_dropped_by_lineage_up_to_the_limit() -> None:
    found = accepted(checked(INDEX, **of_files(*range(9))))
    assert found.coverage.drop == FileIds.of([9])
    assert found.coverage.deleted == pytest.approx(0.1)
    assert code(checked(INDEX, **of_files(*range(7)))) == Code.TOO_MUCH_DELETED


def test_without_lineage_nothing_can_be_dropped() -> None:
    index = covering(ORDERS, "i", ["customer"], ["price"], lineage=False)
    accepted(checked(index))
    assert code(checked(index, **of_files(*range(9)))) == Code.NO_LINEAGE


def test_without_hybrid_the_files_must_be_the_same() -> None:
    config = Config(hybrid=False)
    accepted(checked(INDEX, config=config))
    found = checked(INDEX, config=config, **of_files(*range(9)))
    assert code(found) == Code.HYBRID_OFF
    assert isinstance(found, Reason)
    assert dict(found.arguments) == {"appended": 0, "deleted": 1}


def test_conditions_prune_the_content() -> None:
    index = covering(ORDERS, "i", ["key"], ["price"], buckets=0, between=(0, 1600))
    assert accepted(checked(index, ("key",), "key BETWEEN 150 AND 250")).keep.tolist() == [1, 2]


def test_a_predicate_that_is_not_normalised_is_understood_less_but_never_wrongly() -> None:
    index = covering(ORDERS, "i", ["key"], ["price"], buckets=0, between=(0, 1600))
    bound = bind(parse("NOT (key < 150 OR key > 250)"), ORDERS.reading.schema)
    assert {1, 2} <= set(accepted(checked(index, ("key",), predicate=bound)).keep.tolist())
