"""What holds of every decision, whatever the query."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from grebe.config import Config
from grebe.files import FileIds
from grebe.planner.choose import choose
from grebe.planner.decision import Decision, FromMetadata, StandIn
from grebe.planner.query import Aggregate, Filter, Join, Limit, Node, Other, Project, Query, Sort, Union, Window
from grebe.planner.reasons import SENTENCES
from grebe.planner.tables import KnownTable
from tests.planner.lake import MB, NO_BROADCAST, SETTINGS, Ask, Source, covering

COLUMNS = {"a": "long", "b": "long", "d": "date", "x": "double", "s": "string"}
FILES = 8


@st.composite
def sources(draw: st.DrawFn, number: int) -> Source:
    size = draw(st.sampled_from([10_000, 5 * MB, 60 * MB, 900 * MB]))
    source = Source(
        f"t{number}", COLUMNS, max(1, size // 40), size, FILES, format=draw(st.sampled_from(["parquet", "csv"]))
    )
    for place in range(draw(st.integers(0, 3))):
        on = draw(st.lists(st.sampled_from(["a", "b", "d", "s"]), min_size=1, max_size=2, unique=True))
        include = [column for column in COLUMNS if column not in on and draw(st.booleans())]
        options: dict[str, Any] = {
            "buckets": draw(st.sampled_from([0, 4, 6, 8, 200])),
            "hashed": draw(st.sampled_from([None, 1])),
            "bytes": draw(st.integers(1, 2 * size)),
            "runs": draw(st.integers(1, 3)),
            "covered": range(draw(st.integers(4, FILES))),
            "lineage": draw(st.booleans()),
            "where": draw(st.sampled_from([None, None, "b > 5"])),
            "state": draw(st.sampled_from(["ACTIVE", "ACTIVE", "ACTIVE", "DELETED"])),
        }
        if on[0] in ("a", "b"):
            options["between"] = draw(st.sampled_from([None, (0, 1_600)]))
        source = source.having(covering(source, f"i{number}{place}", on, include, **options))
    return source


CONDITIONS = ["", "", "a = 7", "a > 100 AND b > 5", "b IN (1, 2, 3)", "d >= DATE '1995-01-01'", "s LIKE 'x%' AND b > 9"]
KINDS = ["Inner", "Inner", "Inner", "LeftOuter", "RightOuter", "FullOuter", "LeftSemi", "LeftAnti"]


class _Growing:
    """Trees over scans; each knows which attributes it has."""

    def __init__(self, draw: st.DrawFn, ask: Ask, tables: list[Source]) -> None:
        self.draw, self.ask, self.tables = draw, ask, tables

    def key(self, ids: list[int]) -> int | None:
        return self.draw(st.sampled_from([*ids, None]))

    def tree(self, depth: int) -> tuple[Node, list[int]]:
        shape = self.draw(st.sampled_from(["scan", "join", "join", "group", "wrap"])) if depth else "scan"
        if shape == "scan":
            return self.scan()
        below, ids = self.tree(depth - 1)
        if shape == "join":
            other, others = self.tree(depth - 1)
            count = self.draw(st.integers(0, 2))
            left, right = ([self.key(which) for _ in range(count)] for which in (ids, others))
            kind = self.draw(st.sampled_from(KINDS))
            hint = self.draw(st.sampled_from([None, None, None, "left", "right", "merge", "hash"]))
            return Join(kind, below, other, tuple(left), tuple(right), hint), ids + others
        if shape == "group":
            keys = tuple(self.key(ids) for _ in range(self.draw(st.integers(0, 2))))
            outputs = {self.ask.fresh(): key for key in keys if key is not None}
            functions = self.draw(st.sampled_from([("count(1)",), ("sum(x)", "max(x)"), ()]))
            return Aggregate(below, keys, outputs, functions), list(outputs)
        return self.wrapped(below, ids)

    def wrapped(self, below: Node, ids: list[int]) -> tuple[Node, list[int]]:
        key = self.key(ids)
        alias = self.ask.fresh()
        wraps: list[tuple[Node, list[int]]] = [
            (Filter(below, self.draw(st.integers(0, 3))), ids),
            (Project(below, {alias: key} if key is not None else {}), [*ids, alias]),
            (Window(below, (key,), (self.key(ids),)), ids),
            (Sort(below, (key,), self.draw(st.booleans())), ids),
            (Limit(below, self.draw(st.sampled_from([None, 10, 10**9]))), ids),
            (Union((below, self.scan()[0])), []),
            (Other("Generate", (below,), keeps=self.draw(st.booleans())), ids),
        ]
        return self.draw(st.sampled_from(wraps))

    def scan(self) -> tuple[Node, list[int]]:
        table = self.draw(st.sampled_from(self.tables))
        columns = [column for column in COLUMNS if self.draw(st.booleans())]
        condition = self.draw(st.sampled_from(CONDITIONS))
        needed = [column for column in "abds" if f"{column} " in condition and column not in columns]
        facts: dict[str, Any] = {}
        if self.draw(st.booleans()):
            listed = FileIds.of(self.draw(st.sets(st.integers(0, FILES - 1), min_size=6)))
            facts = {"listed": listed, "listed_bytes": len(listed) * table.bytes // FILES}
        scan = self.ask.scan(table, [*columns, *needed], condition, **facts)
        return (Filter(scan.node, 1) if condition else scan.node), list(scan.ids.values())


@st.composite
def queries(draw: st.DrawFn) -> tuple[Query, dict[str, KnownTable]]:
    ask = Ask(draw(st.sampled_from([SETTINGS, NO_BROADCAST])))
    tables = [draw(sources(number)) for number in range(draw(st.integers(1, 3)))]
    growing = _Growing(draw, ask, tables)
    roots = [growing.tree(draw(st.integers(0, 4)))[0] for _ in range(draw(st.integers(1, 2)))]
    return ask.query(*roots), ask.tables


@settings(max_examples=200, deadline=None)
@given(queries())
def test_a_decision_is_sound_and_never_dearer_than_no_index(asked: tuple[Query, dict[str, KnownTable]]) -> None:
    query, tables = asked
    decision = choose(query, tables, Config())
    assert decision.after.milliseconds <= decision.before.milliseconds
    assert (decision.before == decision.after) or decision.choices
    _check_choices(decision, query, tables)
    _check_reasons(decision, query, tables)
    assert choose(query, tables, Config()) == decision


def _check_choices(decision: Decision, query: Query, tables: dict[str, KnownTable]) -> None:
    numbers = [choice.relation for choice in decision.choices]
    assert numbers == sorted(set(numbers))
    for choice in decision.choices:
        relation = query.relations[choice.relation]
        assert choice.table == relation.table
        assert choice.index in {index.name for index in tables[choice.table].indexes}
        if isinstance(choice, FromMetadata):
            continue
        assert isinstance(choice, StandIn)
        copy = choice.copy
        assert list(choice.content) == sorted(set(choice.content))
        assert set(choice.content) <= set(range(copy.content.num_rows))
        assert choice.buckets == 0 or copy.layout.buckets % choice.buckets == 0
        assert choice.buckets > 0 or not choice.ordered
        served = relation.listed & copy.covered
        assert choice.drop == copy.covered - served
        assert choice.direct == bool(relation.listed - served)
        assert not choice.drop or copy.lineage
        assert relation.required <= copy.columns.keys()


def _check_reasons(decision: Decision, query: Query, tables: dict[str, KnownTable]) -> None:
    """Every index of a table in the query is used, or there is one reason why not."""
    known = {index.name for table in tables.values() for index in table.indexes}
    told = [reason.index for reason in decision.reasons]
    assert len(told) == len(set(told))
    assert set(told) | set(decision.used) == known
    assert not set(told) & set(decision.used)
    assert all(reason.code in SENTENCES and reason.sentence for reason in decision.reasons)
