"""Expressions as Spark understands them, whole, so that equal ones can be told: plain data, as the Java part writes it.

A column is `["@", relation, name, field…]`, anything else `[what it is, its type, child…]`.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

Tree: TypeAlias = list[Any]

COLUMN = "@"
_SHORTEST = 2
_FLIPPED = {"GreaterThan": "LessThan", "GreaterThanOrEqual": "LessThanOrEqual"}
_SYMMETRIC = ("EqualTo", "EqualNullSafe")
_COMPARISONS = ("EqualTo", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "Not")
_ARITHMETIC = (
    "Cast",
    "Add",
    "Subtract",
    "Multiply",
    "Divide",
    "IntegralDivide",
    "Remainder",
    "Pmod",
    "UnaryMinus",
    "Abs",
)
_DATES = ("Year", "Quarter", "Month", "DayOfMonth", "DayOfYear", "DayOfWeek", "WeekDay", "WeekOfYear", "YearOfWeek")
_TIMES = (
    "Hour",
    "Minute",
    "Second",
    "DateAdd",
    "DateSub",
    "DateDiff",
    "AddMonths",
    "LastDay",
    "TruncDate",
    "TruncTimestamp",
)
_TEXTS = ("Upper", "Lower", "Length", "Substring", "StringTrim", "StringTrimLeft", "StringTrimRight")
_PATTERNS = ("StartsWith", "EndsWith", "Contains", "Like", "RLike")
# NULL where any of their arguments is.
_STRICT = frozenset((*_COMPARISONS, *_ARITHMETIC, *_DATES, *_TIMES, *_TEXTS, *_PATTERNS))
# NULL where the first of them is.
_ATTEMPT = re.compile(r"[(,]TRY[,)]")
_STRICT_IN_FIRST = frozenset(("In", "InSet"))


def check_tree(tree: object, tables: int) -> None:
    """Raise `ValueError` for what is no tree over so many tables."""
    if not isinstance(tree, list) or len(tree) < _SHORTEST or not isinstance(tree[0], str):
        raise ValueError("an expression that is no tree")
    if tree[0] == COLUMN:
        _, number, *path = tree
        if type(number) is not int or not 0 <= number < tables or not all(isinstance(one, str) for one in path):
            raise ValueError("a column of no table")
        return
    if not isinstance(tree[1], str):
        raise ValueError("an expression without a type")
    for child in tree[2:]:
        check_tree(child, tables)


def is_column(tree: Tree) -> bool:
    return bool(tree[0] == COLUMN)


def children(tree: Tree) -> list[Tree]:
    return [] if is_column(tree) else tree[2:]


def name_of(tree: Tree) -> str:
    """The class of the expression: `Sum`."""
    return str(tree[0]).partition("(")[0]


def is_attempt(tree: Tree) -> bool:
    """Tell whether an operation gives NULL where others of its name fail: `try_add`, which Spark writes as `+`."""
    return not is_column(tree) and name_of(tree) not in ("Cast", "Literal") and _ATTEMPT.search(tree[0]) is not None


def attempts_in(tree: Tree) -> bool:
    return is_attempt(tree) or any(map(attempts_in, children(tree)))


def renumbered(tree: Tree, number: Callable[[int], int]) -> Tree:
    """The same over relations with other numbers."""
    if is_column(tree):
        return [COLUMN, number(tree[1]), *tree[2:]]
    return [tree[0], tree[1], *(renumbered(child, number) for child in tree[2:])]


def columns_in(tree: Tree) -> Iterator[tuple[int, str]]:
    """Relation and whole column of each that it looks at."""
    if is_column(tree):
        yield tree[1], tree[2]
        return
    for child in tree[2:]:
        yield from columns_in(child)


def equal_columns(condition: Tree) -> tuple[Tree, Tree] | None:
    """Two columns, if that is what the condition says of them."""
    sides = children(condition)
    return (sides[0], sides[1]) if name_of(condition) == "EqualTo" and all(map(is_column, sides)) else None


def is_not_null(condition: Tree) -> Tree | None:
    """The column, if the condition says just that of it."""
    asked = children(condition)[0] if name_of(condition) == "IsNotNull" else None
    return asked if asked is not None and is_column(asked) else None


def rejects_null(condition: Tree, column: Tree) -> bool:
    """Whether the condition holds of no row where the column is NULL. False where that is not known."""
    asked = children(condition)[0] if name_of(condition) == "IsNotNull" else condition
    return _null_with(asked, column)


def _null_with(tree: Tree, column: Tree) -> bool:
    if is_column(tree):
        return tree == column
    if name_of(tree) in _STRICT_IN_FIRST:
        return _null_with(children(tree)[0], column)
    return name_of(tree) in _STRICT and any(_null_with(child, column) for child in children(tree))


def text_of(tree: Tree) -> str:
    """Equal for equal expressions, and for comparisons that are written the other way round."""
    return json.dumps(_ordered(tree), separators=(",", ":"), ensure_ascii=False)


def _ordered(tree: Tree) -> Tree:
    if is_column(tree):
        return tree
    below = [_ordered(child) for child in tree[2:]]
    name = name_of(tree)
    if name in _FLIPPED and len(below) == 2:
        return [tree[0].replace(name, _FLIPPED[name], 1), tree[1], below[1], below[0]]
    if name in _SYMMETRIC:
        below.sort(key=json.dumps)
    return [tree[0], tree[1], *below]
