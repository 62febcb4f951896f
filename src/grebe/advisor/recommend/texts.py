"""SQL texts by their words: which of them differ only in their values, and where they name files by a path.

Spark lists the files behind ``parquet.`path` `` and reads a footer for every query that says so, which takes ten times as long as
planning it; a view over what was listed once is planned as the same query.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

_FEW = 600
"""Different queries that are looked at one by one."""
_BY_PATH = ("parquet", "orc", "csv", "json", "delta")
_VALUES = ("NUMBER", "STRING")
_VALUE = "?"

NameOfPath = Callable[[str, str], str | None]
"""What SQL may call the table of a format at a path; None: just that."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """A query as SQL, and how much it counts: how often it is asked."""

    sql: str
    weight: float = 1.0


def of_each_shape(queries: Sequence[Weighed], most: int = _FEW) -> list[Weighed]:
    """At most so many, which weigh as much as all: those that differ only in their values stand for each other, and of each such
    group as many are taken as there is room for, those that weigh more before others."""
    if len(queries) <= most:
        return list(queries)
    by_shape: dict[str, list[Weighed]] = defaultdict(list)
    for one in queries:
        by_shape[_shape(one.sql)].append(one)
    shapes = sorted(by_shape.values(), key=lambda alike: -_weight(alike))[:most]
    each = max(count for count in range(1, most + 1) if sum(min(count, len(one)) for one in shapes) <= most)
    found = [one for alike in shapes for one in _standing_for(alike, each)]
    scale = _weight(queries) / _weight(found)
    return [replace(one, weight=one.weight * scale) for one in found]


def _standing_for(alike: Sequence[Weighed], most: int) -> list[Weighed]:
    """Evenly over the weight of all."""
    if len(alike) <= most:
        return list(alike)
    step = _weight(alike) / most
    found: dict[str, float] = {}
    passed, place = 0.0, 0
    for number in range(most):
        while passed + alike[place].weight < (number + 0.5) * step and place < len(alike) - 1:
            passed += alike[place].weight
            place += 1
        found[alike[place].sql] = found.get(alike[place].sql, 0.0) + step
    return [Weighed(sql, weight) for sql, weight in found.items()]


def _weight(some: Sequence[Weighed]) -> float:
    return sum(one.weight for one in some)


def _shape(text: str) -> str:
    """Equal for texts that differ only in their values."""
    words = _words(text)
    return text if words is None else " ".join(_VALUE if one.token_type.name in _VALUES else one.text for one in words)


def without_paths(text: str, named: NameOfPath) -> str:
    """The text with names in place of ``format.`path` ``."""
    words = _words(text) if "`" in text else None
    pieces, done = list[str](), 0
    for format, dot, path in zip(words or (), (words or [])[1:], (words or [])[2:], strict=False):
        if path.token_type.name != "IDENTIFIER" or dot.text != "." or format.text.lower() not in _BY_PATH:
            continue
        name = named(format.text.lower(), path.text)
        if name is not None:
            pieces += [text[done : format.start], name]
            done = path.end + 1
    return "".join([*pieces, text[done:]])


def _words(text: str) -> list[Any] | None:
    """Tokens of sqlglot's; None for what has none."""
    from sqlglot import tokenize
    from sqlglot.errors import SqlglotError

    try:
        return tokenize(text, read="spark")
    except SqlglotError:
        return None
