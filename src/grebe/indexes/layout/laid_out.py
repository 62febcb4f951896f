"""Rows of any frame in the order of a tree, in Spark, without a column going through Python: whatever types the others have, they
come out as they went in."""

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from grebe.indexes.classic import functions
from grebe.indexes.columns import Chosen
from grebe.indexes.content.by_range import column, cut_by, quoted
from grebe.indexes.layout.axes import FIRST, Axis
from grebe.indexes.layout.tree import LEAF, Tree
from grebe.predicate.text import to_sql
from grebe.predicate.tree import Literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LEAF_COLUMN = "_grebe_leaf"
_KEY = Chosen((_LEAF_COLUMN,), "integer")
_DEEPEST = 24
"""Cuts below each other in one expression: Spark goes through it with as many calls."""


def laid_out(
    frame: "DataFrame", tree: Tree, sampled: Sequence[int], parts: int, partition: Sequence[str] = ()
) -> "DataFrame":
    """The rows by their leaves, in so many partitions. `sampled`: leaves of some rows. `partition`: expressions that tell in which
    partition of its table a row is, which come before the leaves."""
    routed = with_leaves(frame, tree)
    order = [*map(functions.expr, partition), column(_LEAF_COLUMN)]
    if partition:
        laid = routed.repartitionByRange(parts, *order)
    else:
        laid, _ = cut_by([str(leaf) for leaf in sorted(sampled)], routed, _KEY, list(tree.names), parts)
    return laid.sortWithinPartitions(*order, *map(column, tree.names)).drop(_LEAF_COLUMN)


def with_leaves(frame: "DataFrame", tree: Tree) -> "DataFrame":
    """With one column more: the number of each row's leaf."""
    for stage in _stages(tree):
        # Spark makes no program of what is in a lambda; this one would be too long for any.
        frame = frame.withColumn(_LEAF_COLUMN, functions.expr(f"transform(array(0), _grebe_zero -> {stage})[0]"))
    return frame


def _stages(tree: Tree) -> list[str]:
    """Expressions, each of which may use what the one before found: a leaf, or the node -1 - n where the next goes on."""
    stages: list[str] = []
    roots = [0]
    while roots:
        later: list[int] = []
        found = [(root, _below(tree, root, _DEEPEST, later)) for root in roots]
        if not stages:
            stages.append(found[0][1])
        else:
            branches = " ".join(f"WHEN {-1 - root} THEN {sql}" for root, sql in found)
            stages.append(f"CASE {quoted(_LEAF_COLUMN)} {branches} ELSE {quoted(_LEAF_COLUMN)} END")
        roots = later
    return stages


def _below(tree: Tree, node: int, deep: int, later: list[int]) -> str:
    place = int(tree.column[node])
    if place == LEAF:
        return str(int(tree.first_leaf[node]))
    if not deep:
        later.append(node)
        return str(-1 - node)
    first = _below(tree, node + 1, deep - 1, later)
    second = _below(tree, int(tree.second[node]), deep - 1, later)
    return (
        f"CASE WHEN {_second(tree.names[place], tree.axes[place], int(tree.cut[node]))} THEN {second} ELSE {first} END"
    )


def _second(name: str, axis: Axis, cut: int) -> str:
    """Whether a row goes to the second child: of NULL never true, for it is the least number."""
    if cut <= FIRST:
        return f"{quoted(name)} IS NOT NULL"
    value = axis.values[cut // 2 - 1]
    own = f"CAST({quoted(name)} AS BINARY)" if axis.type.name == "string" else quoted(name)
    return f"{own} {'>' if cut % 2 else '>='} {_constant(axis, value)}"


def _constant(axis: Axis, value: Any) -> str:
    plain = value.as_py() if hasattr(value, "as_py") else value.item()
    kind = axis.type
    if kind.is_decimal and not isinstance(plain, Decimal):
        plain = Decimal(plain).scaleb(-kind.scale)
    return to_sql(Literal(bool(plain) if kind.name == "boolean" else plain, kind))
