"""What a predicate says of some columns only: weaker than the predicate itself, so that no row is lost by it."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from grebe.predicate.tree import (
    TRUE,
    And,
    Column,
    Constant,
    Or,
    Path,
    Predicate,
    Term,
    columns_of,
    opaque_terms,
)


def about(predicate: Predicate, columns: Collection[Path]) -> Predicate:
    """Of a normalised predicate the part that speaks of just these columns; TRUE if it says nothing of them."""
    match predicate:
        case And(below):
            kept = [part for one in below if (part := about(one, columns)) != TRUE]
            return kept[0] if len(kept) == 1 else And(tuple(kept)) if kept else TRUE
        case Or(below):
            parts = tuple(about(one, columns) for one in below)
            return TRUE if TRUE in parts else Or(parts)
        case Constant():
            return predicate
    known = columns_of(predicate) <= frozenset(columns) and not opaque_terms(predicate)
    return predicate if known else TRUE


def renamed(predicate: Predicate, names: Mapping[Path, str]) -> Predicate:
    """The same over data in which these columns lie flat, under these names. It must speak of no others."""
    match predicate:
        case And(below) | Or(below):
            return replace(predicate, predicates=tuple(renamed(one, names) for one in below))
    return _mapped(predicate, names)


def _mapped(node: Predicate, names: Mapping[Path, str]) -> Predicate:
    changes: dict[str, object] = {}
    for name in getattr(type(node), "__dataclass_fields__", {}):
        value = getattr(node, name)
        if isinstance(value, Predicate):
            changes[name] = renamed(value, names)
        elif isinstance(value, Term):
            changes[name] = _term(value, names)
    made: Predicate = replace(node, **changes) if changes else node  # type: ignore[type-var]  # every node is a dataclass
    return made


def _term(term: Term, names: Mapping[Path, str]) -> Term:
    if isinstance(term, Column):
        return Column((names[term.path],), term.type)
    changes: dict[str, object] = {}
    for name in getattr(type(term), "__dataclass_fields__", {}):
        value = getattr(term, name)
        if isinstance(value, Term):
            changes[name] = _term(value, names)
        elif isinstance(value, Predicate):
            changes[name] = renamed(value, names)
    made: Term = replace(term, **changes) if changes else term  # type: ignore[type-var]  # every node is a dataclass
    return made
