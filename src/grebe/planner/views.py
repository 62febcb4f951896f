"""Which blocks of a query a view answers, and how: which parts of which expressions are columns of the view.

A block joins relations, filters them, and maybe groups. A view answers it if it has all tables of the view, if what holds of the
view's rows holds of the query's too, and if all that the query asks of these tables can be said in terms of the view's columns.
Further tables of the block are joined with the view instead. Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from grebe.indexes.view.definition import ROWS, Condition, Definition, Function
from grebe.indexes.view.trees import (
    Tree,
    children,
    columns_in,
    equal_columns,
    is_column,
    is_not_null,
    name_of,
    rejects_null,
    renumbered,
    text_of,
)
from grebe.planner.implication import implies
from grebe.predicate.tree import And, Predicate

Taken: TypeAlias = tuple[Any, ...]
"""[path, what, column…]: the part of an expression at that path is a column of the view, or made of some of them."""

_AGGREGATE = "AggregateExpression"
# What does not change if a row comes twice: such functions of keys are asked of the view's rows as they are.
_OF_SETS = ("Min", "Max", "HyperLogLogPlusPlus")
# Of these equal values are the same value.
_SAME_IF_EQUAL = (
    "byte",
    "short",
    "integer",
    "long",
    "decimal",
    "date",
    "timestamp",
    "timestamp_ntz",
    "boolean",
    "string",
    "binary",
)


@dataclass(frozen=True, slots=True)
class Block:
    """Expressions are trees over the query's relations."""

    number: int
    relations: tuple[int, ...]
    conjuncts: tuple[Tree, ...]
    groups: tuple[Tree, ...] | None
    """None if nothing is grouped."""
    outputs: tuple[Tree, ...]
    predicates: tuple[Predicate, ...] = ()
    """The conjuncts as far as they are understood, over columns as `definition.column_of` names them."""

    @classmethod
    def of(cls, number: int, described: Mapping[str, Any], predicates: Sequence[Predicate]) -> "Block":
        groups = described["groups"]
        return cls(
            number,
            tuple(described["relations"]),
            tuple(described["conjuncts"]),
            None if groups is None else tuple(groups),
            tuple(tree for _, tree in described["outputs"]),
            tuple(predicates),
        )


@dataclass(frozen=True, slots=True)
class Match:
    """How a view answers a block."""

    outputs: tuple[tuple[Taken, ...], ...]
    groups: tuple[tuple[Taken, ...], ...]
    filters: tuple[tuple[int, tuple[Taken, ...]], ...]
    """Conditions of the block that the view's rows do not meet by themselves: by their places."""
    beside: tuple[int, ...]
    """Relations of the block that are none of the view's."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a view does not answer a block: what of the query is not in it, in words."""

    what: str


class _Unanswered(Exception):
    """Carries a `Missing`."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.missing = Missing(what)


def answers(definition: Definition, block: Block, tables: Mapping[int, int]) -> Match | Missing:
    """`tables`: relation of the query -> table of the view, for those that are one and are read alike."""
    try:
        return _Answer(definition, tables).of(block)
    except _Unanswered as no:
        return no.missing


class _Answer:
    def __init__(self, definition: Definition, tables: Mapping[int, int]) -> None:
        self._definition = definition
        self._tables = tables
        self._keys = {text_of(one.tree): one.name for one in definition.keys}
        self._functions = {text_of(one.tree): one for one in definition.functions}
        self._equal = dict(_equal_keys(definition, self._keys))

    def of(self, block: Block) -> Match:
        own = [self._tables[number] for number in block.relations if number in self._tables]
        if sorted(own) != list(range(len(self._definition.bases))):
            tables = ", ".join(base.uri for base in self._definition.bases)
            raise _Unanswered(f"less than a join of {tables}")
        if self._definition.grouped and block.groups is None:
            raise _Unanswered("single rows, which the view has grouped")
        return Match(
            filters=self._filters(block),
            groups=tuple(self._said(self._local(tree), "") for tree in block.groups or ()),
            outputs=tuple(self._said(self._local(tree), "") for tree in block.outputs),
            beside=tuple(number for number in block.relations if number not in self._tables),
        )

    def _local(self, tree: Tree) -> Tree:
        """Over the view's own tables; others have negative numbers."""
        return renumbered(tree, lambda number: self._tables.get(number, -1 - number))

    def _filters(self, block: Block) -> tuple[tuple[int, tuple[Taken, ...]], ...]:
        asked = [self._local(tree) for tree in block.conjuncts]
        texts = {text_of(tree) for tree in asked}
        held = {text_of(one.tree) for one in self._definition.where}
        for condition in self._definition.where:
            if text_of(condition.tree) not in texts and not self._follows(condition, block):
                raise _Unanswered(f"rows that do not meet {condition.sql}")
        return tuple(
            (place, self._said(tree, ""))
            for place, tree in enumerate(asked)
            if text_of(tree) not in held and not _is_said_by_another(tree, asked)
        )

    def _follows(self, condition: Condition, block: Block) -> bool:
        """Whether a condition of the view holds wherever all of the block's do."""
        known = self._definition.predicate(condition)
        return known is not None and implies(And(block.predicates), known)

    def _said(self, tree: Tree, path: str) -> tuple[Taken, ...]:
        """The parts of an expression that are taken from the view."""
        text = text_of(tree)
        name = self._keys.get(text) or self._equal.get(text)
        if name is not None:
            return ((path, "column", name),)
        if is_column(tree):
            if tree[1] < 0:
                return ()
            raise _Unanswered(f"column {'.'.join(tree[2:])}")
        if name_of(tree) == _AGGREGATE and self._definition.grouped:
            return self._summed(tree, path)
        return self._below(tree, path)

    def _below(self, tree: Tree, path: str) -> tuple[Taken, ...]:
        found = [self._said(child, f"{path}/{place}") for place, child in enumerate(children(tree))]
        return tuple(one for each in found for one in each)

    def _summed(self, tree: Tree, path: str) -> tuple[Taken, ...]:
        """An aggregate over rows that stand for several."""
        function, *filters = children(tree)
        known = (
            Function(function, "count", (ROWS,)) if _counts_rows(function) else self._functions.get(text_of(function))
        )
        if known is not None and not _is_distinct(tree):
            conditions = [self._said(one, f"{path}/{place + 1}") for place, one in enumerate(filters)]
            return ((path, known.what, *known.measures), *(one for each in conditions for one in each))
        what = f"{name_of(function).lower()}({', '.join(sorted({name for _, name in columns_in(function)}))})"
        if not _is_distinct(tree) and name_of(function) not in _OF_SETS:
            raise _Unanswered(what)
        try:
            return self._below(tree, path)
        except _Unanswered as no:
            raise _Unanswered(what) from no


def _is_said_by_another(condition: Tree, asked: Sequence[Tree]) -> bool:
    """Spark adds to `year(d) = 1997` that d is not NULL."""
    column = is_not_null(condition)
    return column is not None and any(rejects_null(other, column) for other in asked if other is not condition)


def _equal_keys(definition: Definition, keys: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Columns that are no keys, but equal to one in all rows of the view: text -> key."""
    for condition in definition.where:
        pair = equal_columns(condition.tree)
        if pair is None or not _are_same_if_equal(definition, pair):
            continue
        for one, other in (pair, pair[::-1]):
            if text_of(one) not in keys and text_of(other) in keys:
                yield text_of(one), keys[text_of(other)]


def _are_same_if_equal(definition: Definition, pair: tuple[Tree, Tree]) -> bool:
    types = {_type_of(definition, column) for column in pair}
    return len(types) == 1 and types.pop().partition("(")[0] in _SAME_IF_EQUAL


def _type_of(definition: Definition, column: Tree) -> str:
    """Empty for a field of a column."""
    known = definition.bases[column[1]].reading.columns if len(column) == 3 else ()
    return next((one.type for one in known if one.name == column[2]), "")


def _counts_rows(function: Tree) -> bool:
    arguments = children(function)
    return name_of(function) == "Count" and all(
        name_of(one) == "Literal" and not str(one[0]).startswith("Literal(null") for one in arguments
    )


def _is_distinct(aggregate: Tree) -> bool:
    """Its fields are the function, the mode, whether it is distinct, and more."""
    return str(aggregate[0]).split(",")[2] == "true"
