"""What a predicate says of some columns only: weaker than the predicate itself, so that no row is lost by it."""

from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from typing import TypeVar

from grebe.predicate.tree import (
    TRUE,
    And,
    Cast,
    Column,
    Constant,
    Or,
    Path,
    Predicate,
    Term,
    columns_of,
    opaque_terms,
)
from grebe.predicate.weaker import weaker

Node = TypeVar("Node", bound=Predicate | Term)


def about(predicate: Predicate, columns: Collection[Path]) -> Predicate:
    """Of a normalised predicate the part that speaks of just these columns; TRUE if it says nothing of them.

    Of a function that cannot be turned round exactly the `weaker` form: every row of the predicate makes it true, others may too.
    """
    match predicate:
        case And(below):
            kept = [part for one in below if (part := about(one, columns)) != TRUE]
            return kept[0] if len(kept) == 1 else And(tuple(kept)) if kept else TRUE
        case Or(below):
            parts = tuple(about(one, columns) for one in below)
            return TRUE if TRUE in parts else Or(parts)
        case Constant():
            return predicate
    if not columns_of(predicate) <= frozenset(columns):
        return TRUE
    if not opaque_terms(predicate):
        return predicate
    implied = weaker(predicate)
    return TRUE if implied is None else implied


def renamed(node: Node, names: Mapping[Path, str]) -> Node:
    """The same over data in which these columns lie flat, under these names. It must speak of no others."""
    if isinstance(node, Column):
        return replace(node, path=(names[node.path],))
    changes: dict[str, object] = {}
    for field in fields(node):  # type: ignore[arg-type]  # every node is a dataclass
        value = getattr(node, field.name)
        if isinstance(value, Predicate | Term):
            changes[field.name] = renamed(value, names)
        elif isinstance(value, tuple) and any(isinstance(one, Predicate | Column | Cast) for one in value):
            changes[field.name] = tuple(renamed(one, names) for one in value)
    made: Node = replace(node, **changes) if changes else node  # type: ignore[type-var]  # as above
    return made
