"""The queries that advice is given for, as the planner sees them, each with its weight."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grebe.planner.query import Aggregate, Join, Node, Project, Query, Relation
from grebe.planner.shapes import every_node
from grebe.predicate.tree import Path


@dataclass(frozen=True, slots=True)
class Asked:
    query: Query
    weight: float


@dataclass(frozen=True, slots=True)
class Uses:
    """What a query does with the columns of one of its relations."""

    relation: Relation
    joined: tuple[tuple[Path, ...], ...]
    """The keys of each join, together."""
    grouped: tuple[tuple[Path, ...], ...]


def uses_of(query: Query) -> list[Uses]:
    columns = _columns(query)
    joined: dict[int, list[tuple[Path, ...]]] = {}
    grouped: dict[int, list[tuple[Path, ...]]] = {}
    for node in every_node(query.roots):
        if isinstance(node, Join):
            _note(joined, [columns.get(key) for key in node.left_keys if key is not None])
            _note(joined, [columns.get(key) for key in node.right_keys if key is not None])
        elif isinstance(node, Aggregate):
            _note(grouped, [columns.get(key) for key in node.keys if key is not None])
    return [Uses(one, tuple(joined.get(one.number, ())), tuple(grouped.get(one.number, ()))) for one in query.relations]


def _note(found: dict[int, list[tuple[Path, ...]]], keys: Sequence[tuple[int, Path] | None]) -> None:
    """Keys of one relation belong together."""
    by_relation: dict[int, list[Path]] = {}
    for key in keys:
        if key is not None:
            by_relation.setdefault(key[0], []).append(key[1])
    for number, paths in by_relation.items():
        found.setdefault(number, []).append(tuple(dict.fromkeys(paths)))


def _columns(query: Query) -> Mapping[int, tuple[int, Path]]:
    """Attribute -> relation and column, also where it has another name since."""
    found = {
        attribute.id: (relation.number, attribute.path)
        for relation in query.relations
        for attribute in relation.attributes
    }
    renamed: dict[int, int] = {}
    for node in every_node(query.roots):
        renamed |= _renamed(node)
    for new in renamed:
        old = new
        for _ in range(len(renamed)):
            if old not in renamed:
                break
            old = renamed[old]
        if old in found:
            found[new] = found[old]
    return found


def _renamed(node: Node) -> Mapping[int, int]:
    if isinstance(node, Project):
        return node.aliases
    return node.outputs if isinstance(node, Aggregate) else {}
