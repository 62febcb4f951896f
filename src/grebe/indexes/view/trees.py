"""Expressions as Spark understands them, whole, so that equal ones can be told: plain data, as the Java part writes it.

A column is `["@", relation, name, field…]`, anything else `[what it is, its type, child…]`.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

Tree: TypeAlias = list[Any]

COLUMN = "@"
_FLIPPED = {"GreaterThan": "LessThan", "GreaterThanOrEqual": "LessThanOrEqual"}
_SYMMETRIC = ("EqualTo", "EqualNullSafe")


def is_column(tree: Tree) -> bool:
    return bool(tree[0] == COLUMN)


def children(tree: Tree) -> list[Tree]:
    return [] if is_column(tree) else tree[2:]


def name_of(tree: Tree) -> str:
    """The class of the expression: `Sum`."""
    return str(tree[0]).partition("(")[0]


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
