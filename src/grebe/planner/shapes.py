"""What the shape of a plan says by itself: which attributes are equal, which columns they are, and which parts occur twice."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from grebe.planner.query import (
    Aggregate,
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
    Sort,
    Union,
    Window,
)
from grebe.predicate.tree import Path

Class: TypeAlias = int
"""Attributes that are equal wherever they meet are one class, named by one of them."""

_EQUATING = frozenset({"Inner", "LeftSemi"})
"""Joins above which the keys of both sides are equal in every row."""


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case Join(_, left, right):
            return (left, right)
        case Union(below) | Other(_, below):
            return below
        case Filter(child) | Project(child) | Aggregate(child) | Window(child) | Sort(child) | Limit(child):
            return (child,)
    return ()


def every_node(roots: Iterable[Node]) -> Iterator[Node]:
    pending = list(roots)
    while pending:
        node = pending.pop()
        yield node
        pending.extend(children(node))


class Attributes:
    """The classes of equal attributes of a whole query, and the columns behind them."""

    __slots__ = ("_origin", "_parent")

    def __init__(self, query: Query) -> None:
        self._parent: dict[int, int] = {}
        self._origin = {
            attribute.id: (relation.number, attribute.path)
            for relation in query.relations
            for attribute in relation.attributes
        }
        for node in every_node(query.roots):
            match node:
                case Project(_, aliases) | Aggregate(_, _, aliases):
                    for after, before in aliases.items():
                        self._unite(after, before)
                case Join(kind, _, _, left_keys, right_keys) if kind in _EQUATING:
                    for left, right in zip(left_keys, right_keys, strict=True):
                        if left is not None and right is not None:
                            self._unite(left, right)

    def class_of(self, attribute: int) -> Class:
        parent = self._parent
        while (above := parent.get(attribute, attribute)) != attribute:
            attribute = above
        return attribute

    def classes_of(self, keys: Iterable[Key]) -> tuple[Class | None, ...]:
        return tuple(None if key is None else self.class_of(key) for key in keys)

    def columns_of(self, one: Class) -> list[tuple[int, Path]]:
        """Relation and column of every attribute in a class."""
        return [origin for attribute, origin in self._origin.items() if self.class_of(attribute) == one]

    def column_of(self, attribute: int) -> tuple[int, Path] | None:
        return self._origin.get(attribute)

    def _unite(self, one: int, other: int) -> None:
        first, second = self.class_of(one), self.class_of(other)
        if first != second:
            self._parent[max(first, second)] = min(first, second)


def repeated(query: Query, attributes: Attributes) -> Mapping[int, int]:
    """How often each part of the plan that occurs several times does so, by `id` of its node. Spark runs a shuffle of such a part
    once and reads it again."""
    named = Counter((relation.table, relation.name) for relation in query.relations)
    if all(count == 1 for count in named.values()):
        return {}
    signer = _Signer({relation.number: relation for relation in query.relations}, attributes)
    for root in query.roots:
        signer.sign(root)
    counted = Counter(signer.signed.values())
    return {node: counted[number] for node, number in signer.signed.items() if counted[number] > 1}


class _Signer:
    """Gives equal parts equal numbers."""

    def __init__(self, relations: Mapping[int, Relation], attributes: Attributes) -> None:
        self._relations = relations
        self._attributes = attributes
        self._numbers: dict[tuple[object, ...], int] = {}
        self.signed: dict[int, int] = {}

    def sign(self, node: Node) -> int:
        below = tuple(map(self.sign, children(node)))
        number = self._numbers.setdefault((type(node), self._own(node), below), len(self._numbers))
        self.signed[id(node)] = number
        return number

    def _columns(self, keys: Iterable[Key]) -> tuple[Path | None, ...]:
        """Attributes differ between two scans of a table; columns do not."""
        found = (None if key is None else self._attributes.column_of(key) for key in keys)
        return tuple(None if column is None else column[1] for column in found)

    def _own(self, node: Node) -> tuple[object, ...]:
        """What tells a node from others of its type, its children aside."""
        match node:
            case Scan(number):
                scanned = self._relations[number]
                return (scanned.table, scanned.name, scanned.required, scanned.predicate, scanned.bytes)
            case Leaf(name, size):
                return (name, size)
            case Join(kind, _, _, left_keys, right_keys):
                return (kind, self._columns(left_keys), self._columns(right_keys))
            case Aggregate(_, keys, _, functions):
                return (self._columns(keys), len(functions))
            case Window(_, keys, order):
                return (self._columns(keys), self._columns(order))
            case Sort(_, keys):
                return self._columns(keys)
            case Filter(_, what) | Other(what) | Limit(_, what):
                return (what,)
        return ()
