"""The queries that a layout is learned from, as they are given, understood over a table, and remembered by the log."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grebe.errors import InvalidIndex, InvalidPredicate
from grebe.formats import Reading
from grebe.indexes import where
from grebe.predicate.about import about
from grebe.predicate.text import to_sql
from grebe.predicate.tree import (
    TRUE,
    Cast,
    Column,
    Compare,
    Constant,
    In,
    IsNull,
    Literal,
    Path,
    Predicate,
    StartsWith,
    columns_of,
    walk,
)

MOST_QUERIES = 5_000
_ONE_OF_SEVERAL = re.compile(r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|[^;'"`])+""", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Logged:
    """A query over a table, as far as it is understood."""

    predicate: Predicate
    weight: float

    @property
    def compared(self) -> frozenset[Path]:
        """The columns that it compares with constants."""
        said = about(self.predicate, columns_of(self.predicate))
        return frozenset(path for node in walk(said) for path in _compared(node))


def logged(given: object, index: str) -> tuple[tuple[str, float], ...]:
    """As users give them: texts and weights. Raises `InvalidIndex`."""
    found = tuple(_each(given, index))
    if not found:
        raise InvalidIndex(
            f"index {index}: queries names none: give predicates that queries ask, such as "
            "queries=[\"day >= DATE '2024-01-01' AND price < 10\"]",
            detail="QUERIES",
        )
    if len(found) > MOST_QUERIES:
        raise InvalidIndex(
            f"index {index}: {len(found):,} queries are more than {MOST_QUERIES:,}; give those that matter most, or some at random",
            detail="QUERIES",
        )
    return found


def _each(given: object, index: str) -> Iterator[tuple[str, float]]:
    if isinstance(given, str):
        yield from ((one.strip(), 1.0) for one in _ONE_OF_SEVERAL.findall(given) if one.strip())
        return
    if isinstance(given, Predicate):
        given = [given]
    if not isinstance(given, Sequence):
        raise _no_query(given, index)
    for one in given:
        match one:
            case str() if one.strip():
                yield one, 1.0
            case Predicate():
                yield to_sql(one), 1.0
            case (str() | Predicate() as text, int() | float() as weight) if not isinstance(weight, bool):
                if not 0 < weight < math.inf:
                    raise InvalidIndex(
                        f"index {index}: the weight of a query is a number above 0, not {weight}", detail="QUERIES"
                    )
                yield text if isinstance(text, str) else to_sql(text), float(weight)
            case _:
                raise _no_query(one, index)


def _no_query(given: object, index: str) -> InvalidIndex:
    return InvalidIndex(
        f'index {index}: a query is a predicate, SQL text or grebe.col("a") == 1, alone or with its weight, not '
        f"{type(given).__name__}",
        detail="QUERIES",
    )


def understood(
    queries: Sequence[tuple[str, float]],
    reading: Reading,
    case_sensitive: bool,
    time_zone: str,
    ansi: bool,
    index: str,
) -> list[Logged]:
    """Over the table's columns. Raises `InvalidIndex` for columns that are not there and constants that are none of their type."""
    found = []
    for text, weight in queries:
        try:
            predicate = where.meant(text, reading, case_sensitive, time_zone, ansi)
        except InvalidPredicate as problem:
            raise InvalidIndex(f"index {index}: query {text}: {problem.args[0]}", detail="QUERIES") from problem
        for node in walk(predicate):
            if isinstance(node, Cast) and isinstance(node.term, Literal):
                raise InvalidIndex(
                    f"index {index}: query {text}: {to_sql(node.term)} is no {node.to}, the type that it is compared with",
                    detail="QUERIES",
                )
        found.append(Logged(predicate, weight))
    return found


def asked_of(queries: Sequence[Logged], on: Sequence[Path]) -> list[tuple[str, float]]:
    """What they say of these columns, as SQL that means the same to every session, each once."""
    weights: dict[str, float] = {}
    for query in queries:
        said = about(query.predicate, on)
        if said != TRUE and not isinstance(said, Constant):
            text = to_sql(said)
            weights[text] = weights.get(text, 0.0) + query.weight
    return list(weights.items())


def _compared(node: object) -> Iterator[Path]:
    match node:
        case (
            Compare(_, Column(path), Literal())
            | In(Column(path), _)
            | StartsWith(Column(path), _)
            | IsNull(Column(path))
        ):
            yield path
