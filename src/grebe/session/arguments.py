"""Checks of what callers hand to a table: wrong types end in an error of Grebe that says what to give instead."""

from collections.abc import Iterable, Iterator, Sequence

from grebe.errors import InvalidPredicate
from grebe.files.unicode_names import is_unicode
from grebe.predicate.builder import Col, col
from grebe.predicate.parse import parse
from grebe.predicate.tree import Contains, EndsWith, Like, Literal, Predicate, StartsWith, Term, walk

_MOST_SHOWN = 200
"""Characters of a value in a message."""


def column_given(name: str) -> Col:
    """Return the column of this name. Raise `InvalidPredicate` for what is no name."""
    if not isinstance(name, str):
        raise InvalidPredicate(
            f"{_shown(name)} names no column: give its name as text, such as 'a' or 'a.b'", detail="COLUMN_NAME"
        )
    return col(name)


def keys_given(keys: Iterable[object]) -> Iterator[object]:
    """Return the values to look up. Raise `InvalidPredicate` for what holds no values."""
    try:
        return iter(keys)
    except TypeError:
        raise InvalidPredicate(
            f"keys is a single value of the type {type(keys).__name__}; give a list of values, or get(column, value) for one",
            detail="VALUE",
        ) from None


def column_names_given(columns: Sequence[str] | None) -> list[str] | None:
    """Return the names of the columns that a caller wants. Raise `InvalidPredicate` for what is no list of names."""
    if columns is None:
        return None
    if isinstance(columns, str):
        raise InvalidPredicate(f"columns={columns!r} is one text; give a list: columns=[{columns!r}]", detail="COLUMNS")
    names = list(columns) if isinstance(columns, Iterable) else None
    if names is None or not all(isinstance(name, str) for name in names):
        raise InvalidPredicate(
            f"columns={_shown(columns)} is no list of names; give a list of text: columns=['a', 'b']", detail="COLUMNS"
        )
    return names


def predicate_given(predicate: str | Predicate) -> Predicate:
    """Return a predicate as it is asked for. Raise `InvalidPredicate` for what is none."""
    if not isinstance(predicate, str | Predicate):
        raise InvalidPredicate(
            f"{_shown(predicate)} is no predicate; give SQL text such as 'a = 1', or grebe.col('a') == 1",
            detail="VALUE",
        )
    asked = parse(predicate) if isinstance(predicate, str) else predicate
    require_unicode(asked)
    return asked


def require_unicode(*sought: Term | Predicate) -> None:
    """Raise `InvalidPredicate` for predicates or values with a text that has no UTF-8: no file can hold such a value."""
    if not all(is_unicode(text) for one in sought for text in _texts(one)):
        raise InvalidPredicate(
            "a text that is compared with holds bytes or characters that are no UTF-8 (lone surrogates), so no row can have it; "
            "give the value as UTF-8 text, or as bytes for a column of bytes",
            detail="VALUE",
        )


def _texts(sought: Term | Predicate) -> Iterator[str]:
    for node in walk(sought):
        match node:
            case Literal(str(text)) | Like(_, text) | StartsWith(_, text) | EndsWith(_, text) | Contains(_, text):
                yield text


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
