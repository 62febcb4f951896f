"""Whether the SQL that a view is built from means to Spark what the view's query does."""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grebe.errors import InvalidIndex, Unsupported
from grebe.indexes.classic import functions
from grebe.indexes.columns import spark_schema
from grebe.indexes.view.build import joined_rows
from grebe.indexes.view.definition import Condition, Definition
from grebe.indexes.view.expressions import parsed
from grebe.indexes.view.nodes import Expression, summed_up
from grebe.indexes.view.spark_columns import spark_column
from grebe.indexes.view.trees import Tree, children, name_of, renumbered, text_of
from grebe.spark.conditions import condition_of
from grebe.spark.shim import load

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_IN_OTHER_WORDS = ("UnscaledValue", "StaticInvoke")


def require_same(
    session: "SparkSession",
    frame: "DataFrame",
    said: Mapping[str, Any],
    definition: Definition,
    table: str,
    index: str,
) -> None:
    """Raise `InvalidIndex` if what the view is built from, the SQL of its expressions, does not mean to Spark what the query does.
    Queries are compared with the query's own expressions, so that a difference would be a wrong answer."""
    from pyspark.sql import DataFrame

    written = [*said["keys"], *(each for one in said["measures"] for each in one["arguments"])]
    tables = [DataFrame(each, session) for each in load(session).bridge.tablesOf(frame._jdf, table)]
    try:
        roots = [one["roots"] for one in said["relations"]]
        rebuilt = _Rebuilt(definition, tables, roots, [parsed(one["sql"], len(tables)) for one in written])
    except _Unlike as unlike:
        raise _another(index, str(unlike)) from unlike
    for one, read in zip(written, rebuilt.trees, strict=True):
        if _is_told(one["tree"]) and text_of(read) != text_of(one["tree"]):
            raise _another(index, one["sql"])
    different = rebuilt.different_condition()
    if different is not None:
        raise _another(index, different.sql)


def require_same_meaning(session: "SparkSession", definition: Definition) -> None:
    """Raise `Unsupported` if the expressions of a stored view mean something else in this session than where it was made: what
    `size(a)` or `a * b` gives is a matter of settings."""
    keys = {one.sql: one.tree for one in definition.keys}
    tables = len(definition.bases)
    arguments = [one for measure in definition.measures for one in summed_up(parsed(measure.sql, tables, True))]
    try:
        with _without_rows(session, definition) as frames:
            described = [json.loads(load(session).bridge.relation(one._jdf)) for one in frames]
            roots = [one["roots"] for one in described]
            rebuilt = _Rebuilt(definition, frames, roots, [*(parsed(sql, tables) for sql in keys), *arguments])
    except _Unlike as unlike:
        raise _elsewhere(str(unlike)) from unlike
    for (sql, tree), read in zip(keys.items(), rebuilt.trees, strict=False):
        if _is_told(tree) and text_of(read) != text_of(tree):
            raise _elsewhere(sql)
    held = {text_of(part) for tree in rebuilt.trees for part in _parts(tree)}
    for function in definition.functions:
        for argument in children(function.tree):
            if any(text_of(part) not in held for part in _told(argument)):
                raise _elsewhere(f"an argument of {name_of(function.tree).lower()}")
    different = rebuilt.different_condition()
    if different is not None:
        raise _elsewhere(different.sql)


@contextmanager
def _without_rows(session: "SparkSession", definition: Definition) -> "Iterator[list[DataFrame]]":
    """Yield frames with the columns of the view's tables, which read folders without files: nothing is asked of a store."""
    from pyspark.sql.types import StructType

    with tempfile.TemporaryDirectory(prefix="grebe-view-") as root:
        frames = []
        for number, base in enumerate(definition.bases):
            folder = Path(root, str(number))
            folder.mkdir()
            columns = ((one.name, one.type) for one in base.reading.columns)
            schema = StructType.fromJson(json.loads(json.dumps(spark_schema(columns))))
            frames.append(session.read.schema(schema).parquet(folder.as_uri()))
        yield frames


class _Unlike(Exception):
    """Spark makes no such query of a definition; the message names what it makes or refuses."""


class _Rebuilt:
    """What a view is built from, as Spark understands it in this session: the trees of some expressions, and of its conditions.
    `roots` tells the tables apart."""

    def __init__(
        self,
        definition: Definition,
        tables: "Sequence[DataFrame]",
        roots: Sequence[list[str]],
        expressions: Sequence[Expression],
    ) -> None:
        from pyspark.errors import PySparkException

        bridge, self._definition = load(tables[0].sparkSession).bridge, definition
        columns = [spark_column(one).alias(f"c{number}") for number, one in enumerate(expressions)]
        try:
            frame = joined_rows(definition, tables, "inner").select(*columns or [functions.lit(1)])
            again = json.loads(bridge.stored(frame._jdf, definition.bases[0].uri))
        except PySparkException as problem:
            raise _Unlike(f"an expression ({condition_of(problem)})") from problem
        if "node" in again:
            raise _Unlike(f"a {again['node']}")
        numbers = [roots.index(one["roots"]) for one in again["relations"]]
        found = {name: renumbered(tree, numbers.__getitem__) for name, tree in again["block"]["outputs"]}
        self.trees = [found[f"c{number}"] for number in range(len(expressions))]
        self._conditions = {text_of(renumbered(tree, numbers.__getitem__)) for tree in again["block"]["conjuncts"]}

    def different_condition(self) -> Condition | None:
        """Return the first condition that Spark does not have, if there is one."""
        for condition in self._definition.where:
            if _is_told(condition.tree) and text_of(condition.tree) not in self._conditions:
                return condition
        return None


def _is_told(tree: Tree) -> bool:
    """Tell whether Spark has SQL for an expression. What it has none for is written in other words."""
    return name_of(tree) not in _IN_OTHER_WORDS and all(map(_is_told, children(tree)))


def _told(tree: Tree) -> Iterator[Tree]:
    """Yield the largest parts of an expression that Spark has SQL for."""
    if _is_told(tree):
        yield tree
    else:
        for child in children(tree):
            yield from _told(child)


def _parts(tree: Tree) -> Iterator[Tree]:
    yield tree
    for child in children(tree):
        yield from _parts(child)


def _elsewhere(what: str) -> Unsupported:
    return Unsupported(
        f"the view was made in a session, or by a version of Spark, where {what} means something else than here; the setting of "
        "Spark that makes the difference is to be as it was, or the view is to be created anew",
        detail="VIEW_SESSION",
    )


def _another(index: str, what: str) -> InvalidIndex:
    return InvalidIndex(
        f"view {index}: {what} means something else once it is written down as SQL, so that the view would not hold what the query "
        "gives; say it in other words (docs/guides/views.md says which)",
        detail="VIEW_FUNCTION",
    )
