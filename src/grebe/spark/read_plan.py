"""Spark's optimised plan, as the Java part describes it, as the planner's `Query`."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from grebe.files import FileIds
from grebe.planner.query import (
    Aggregate,
    Answerable,
    Attribute,
    Filter,
    Join,
    Key,
    Leaf,
    Limit,
    Node,
    Other,
    Project,
    Query,
    Relation,
    Scan,
    Settings,
    Sort,
    Union,
    Window,
)
from grebe.predicate.normalise import normalise
from grebe.predicate.tree import TRUE, And, Path, Predicate
from grebe.predicate.types import Type
from grebe.spark.read_expressions import predicate, type_of_json

Json = Mapping[str, Any]

# Rows stay where they are; columns may come and go.
_KEEPS = {"Generate", "Sample", "Expand", "SubqueryAlias", "LocalLimit", "MapInArrow", "MapInPandas", "ArrowEvalPython"}
SETTINGS = (
    "spark.sql.shuffle.partitions",
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.adaptive.enabled",
    "spark.sql.adaptive.autoBroadcastJoinThreshold",
    "spark.sql.sources.bucketing.enabled",
)
"""What of Spark's settings `Settings` is made of."""


@dataclass(frozen=True, slots=True)
class Files:
    """Which files of a relation are registered."""

    listed: FileIds
    listed_bytes: int
    unregistered_files: int
    unregistered_bytes: int
    twice: bool


@dataclass
class _Reader:
    """Numbers for fields inside columns are negative: the plan has none for them."""

    columns: dict[int, tuple[int, str, Type]] = field(default_factory=dict)
    """Attribute -> relation, name, type."""
    fields: dict[tuple[int, tuple[str, ...]], int] = field(default_factory=dict)
    above: dict[int, list[Any]] = field(default_factory=dict)
    """Conjuncts right above a relation."""
    scans: Counter[int] = field(default_factory=Counter)
    """How often a relation stands in the plan."""

    def node(self, plan: Json) -> Node:
        reading = _NODES.get(plan["n"])
        if reading is not None:
            return reading(self, plan)
        children = tuple(self.node(child) for child in plan["c"])
        return Other(plan["n"], children, keeps=plan["n"] in _KEEPS)

    def scan(self, plan: Json) -> Node:
        self.scans[plan["r"]] += 1
        return Scan(plan["r"])

    def filtered(self, plan: Json) -> Node:
        child = self.node(plan["c"][0])
        below: Node = child
        while isinstance(below, Project | Filter):
            below = below.child
        if isinstance(below, Scan):
            self.above.setdefault(below.relation, []).extend(plan["e"])
        return Filter(child, sum(1 for e in plan["e"] if e[0] != "IsNotNull"))

    def joined(self, plan: Json) -> Node:
        left, right = (self.node(child) for child in plan["c"])
        return Join(
            plan["type"], left, right, self.keys(plan.get("l", ())), self.keys(plan.get("r", ())), _hint(plan["hint"])
        )

    def key(self, reference: list[Any] | None) -> Key:
        if reference is None:
            return None
        _, number, *inner = reference
        return number if not inner else self.fields.setdefault((number, tuple(inner)), -len(self.fields) - 1)

    def keys(self, references: Sequence[list[Any] | None]) -> tuple[Key, ...]:
        return tuple(self.key(reference) for reference in references)

    def aliases(self, pairs: Sequence[list[Any]]) -> dict[int, int]:
        found = ((new, self.key(old)) for new, old in pairs)
        return {new: old for new, old in found if old is not None}

    def predicate(self, relation: int) -> Predicate:
        if self.scans[relation] > 1:
            return TRUE  # what is above one of them need not hold above the others
        columns = {number: (name, kind) for number, (of, name, kind) in self.columns.items() if of == relation}
        parts = [predicate(expression, columns) for expression in self.above.get(relation, ())]
        return normalise(And(tuple(parts))) if parts else TRUE


_NODES: dict[str, Callable[[_Reader, Json], Node]] = {
    "Relation": _Reader.scan,
    "Leaf": lambda reader, plan: Leaf(plan["name"], plan["bytes"]),
    "Filter": _Reader.filtered,
    "Project": lambda reader, plan: Project(reader.node(plan["c"][0]), reader.aliases(plan["a"])),
    "Join": _Reader.joined,
    "Aggregate": lambda reader, plan: Aggregate(
        reader.node(plan["c"][0]),
        reader.keys(plan["k"]),
        reader.aliases(plan["a"]),
        tuple(plan["f"]),
        tuple(None if one is None else Answerable(*one) for one in plan["m"]),
    ),
    "Window": lambda reader, plan: Window(reader.node(plan["c"][0]), reader.keys(plan["k"]), reader.keys(plan["o"])),
    "Sort": lambda reader, plan: Sort(reader.node(plan["c"][0]), reader.keys(plan["k"]), plan["global"]),
    "GlobalLimit": lambda reader, plan: Limit(reader.node(plan["c"][0]), plan["rows"]),
    "LocalLimit": lambda reader, plan: Limit(reader.node(plan["c"][0]), plan["rows"]),
    "Union": lambda reader, plan: Union(tuple(reader.node(child) for child in plan["c"])),
}


def read_plan(question: Json, relation_of: Callable[[int, Json], Relation], cores: int) -> Query:
    """`relation_of` finds the table behind a relation; what only the plan knows of it is filled in here."""
    reader = _Reader()
    for number, described in enumerate(question["relations"]):
        for attribute, name, kind in described["output"]:
            reader.columns[attribute] = (number, name, type_of_json(kind))
    roots = tuple(reader.node(plan) for plan in question["plans"])
    relations = tuple(
        _filled(relation_of(number, described), described, reader)
        for number, described in enumerate(question["relations"])
    )
    only, without = _allowed(question)
    return Query(roots, relations, _settings(question["settings"], cores), only, without)


def _allowed(question: Json) -> tuple[frozenset[str] | None, frozenset[str]]:
    """What the user says of this query: by `lake.only`, by `lake.without`, or by hints such as `only a, b`."""
    only = frozenset(question["only"].split("\n")) if question["only"] is not None else None
    without = frozenset((question["without"] or "").split("\n"))
    for hint in question["hints"]:
        for part in hint.split(";"):
            word, _, rest = part.strip().partition(" ")
            names = frozenset(name.strip(" `") for name in rest.split(","))
            if word.lower() == "only":
                only = names if only is None else only & names
            elif word.lower() == "without":
                without |= names
    return only, without - {""}


def _filled(relation: Relation, described: Json, reader: _Reader) -> Relation:
    names = {number: name for number, name, _ in described["output"]}
    whole = [Attribute(number, (name,), kind) for number, name, kind in described["output"]]
    inner = [
        Attribute(number, (names[column], *path), "")
        for (column, path), number in reader.fields.items()
        if column in names
    ]
    return replace(
        relation,
        attributes=(*whole, *inner),
        required=_required(described["uses"], names),
        predicate=reader.predicate(relation.number),
    )


def _required(uses: Sequence[list[Any]], names: Mapping[int, str]) -> frozenset[Path]:
    """A field is not needed by itself where its whole column is."""
    paths = {(names[number], *path) for number, *path in uses}
    return frozenset(path for path in paths if not any(path[:n] in paths for n in range(1, len(path))))


def _hint(text: str) -> str | None:
    """Catalyst writes them as `left:broadcast right:…`."""
    for part in text.split():
        side, _, strategy = part.partition(":")
        if "broadcast" in strategy.lower() and "no_" not in strategy.lower():
            return side
        if "merge" in strategy.lower():
            return "merge"
        if "hash" in strategy.lower():
            return "hash"
    return None


def _settings(values: Mapping[str, str | None], cores: int) -> Settings:
    threshold = _bytes(values["spark.sql.autoBroadcastJoinThreshold"], 10 * 1024**2)
    return Settings(
        cores=cores,
        shuffle_partitions=int(values["spark.sql.shuffle.partitions"] or 200),
        broadcast_bytes=threshold,
        adaptive=values["spark.sql.adaptive.enabled"] != "false",
        adaptive_broadcast_bytes=_bytes(values["spark.sql.adaptive.autoBroadcastJoinThreshold"], threshold),
        bucketing=values["spark.sql.sources.bucketing.enabled"] != "false",
    )


_UNITS = {"k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


def _bytes(text: str | None, default: int) -> int:
    """Spark's own way to write sizes: 10485760, 10485760b, 10m, 10MB, -1."""
    if not text or text.startswith("<"):
        return default
    low = text.strip().lower().removesuffix("b")
    unit = _UNITS.get(low[-1:], 0)
    number = low[:-1] if unit else low
    try:
        return int(number) << 10 * unit
    except ValueError:
        return default
