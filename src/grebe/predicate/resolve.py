"""Names of columns to columns of a schema, as Spark resolves them."""

from difflib import get_close_matches

from grebe.errors import InvalidPredicate
from grebe.predicate.text import column_sql
from grebe.predicate.tree import Column, Opaque, Path, Term
from grebe.predicate.types import Field, Type

_NEAR_NAMES = 3


def resolve(path: Path, schema: Type, case_sensitive: bool) -> Term:
    """The column with its exact name and its type. A path through an array or a map has no single value here: opaque."""
    here = schema
    exact: Path = ()
    for depth, name in enumerate(path):
        if here.name in ("array", "map", "other"):
            return Opaque(column_sql(path), (path,))
        field = _field(name, here, path[: depth + 1], case_sensitive)
        exact = (*exact, field.name)
        here = field.type
    return Column(exact, here)


def _field(name: str, parent: Type, path: Path, case_sensitive: bool) -> Field:
    found = [f for f in parent.fields if f.name == name or (not case_sensitive and f.name.lower() == name.lower())]
    if len(found) == 1:
        return found[0]
    shown = column_sql(path)
    if found:
        names = ", ".join(column_sql((field.name,)) for field in found)
        raise InvalidPredicate(
            f"column {shown} is ambiguous: it may be any of {names}; match case exactly (case_sensitive=True)",
            detail="AMBIGUOUS_COLUMN",
        )
    if parent.name != "struct":
        raise InvalidPredicate(
            f"column {shown} is not there: {column_sql(path[:-1])} is a {parent}, not a struct", detail="UNKNOWN_COLUMN"
        )
    raise InvalidPredicate(f"column {shown} is not there; {_near(name, parent, path)}", detail="UNKNOWN_COLUMN")


def _near(name: str, parent: Type, path: Path) -> str:
    by_lower = {field.name.lower(): field.name for field in parent.fields}
    near = get_close_matches(name.lower(), by_lower, _NEAR_NAMES)
    shown = [column_sql((*path[:-1], by_lower[match])) for match in near]
    if shown:
        return f"did you mean {', '.join(shown)}?"
    first = ", ".join(column_sql((*path[:-1], field.name)) for field in parent.fields[:10])
    return f"there are {first}{', …' if len(parent.fields) > 10 else ''}" if first else "the table has no columns"
