"""Whether the SQL that a view is built from means to Spark what the view's query does."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from grebe.errors import InvalidIndex
from grebe.indexes.classic import functions
from grebe.indexes.view.build import joined_rows
from grebe.indexes.view.definition import Definition
from grebe.indexes.view.expressions import parsed
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
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame

    shim = load(session)
    tables = [DataFrame(each, session) for each in shim.bridge.tablesOf(frame._jdf, table)]
    written = {
        f"c{number}": one
        for number, one in enumerate([*said["keys"], *(each for one in said["measures"] for each in one["arguments"])])
    }
    columns = [spark_column(parsed(one["sql"], len(tables))).alias(name) for name, one in written.items()]
    try:
        rebuilt = joined_rows(definition, tables, "inner").select(*columns or [functions.lit(1)])
        again = json.loads(shim.bridge.stored(rebuilt._jdf, table))
    except PySparkException as problem:
        raise _another(index, f"an expression ({condition_of(problem)})") from problem
    if "node" in again:
        raise _another(index, f"a {again['node']}")
    place = [one["roots"] for one in said["relations"]]
    numbers = [place.index(one["roots"]) for one in again["relations"]]
    read_again = {name: renumbered(tree, numbers.__getitem__) for name, tree in again["block"]["outputs"]}
    for name, one in written.items():
        if _is_told(one["tree"]) and text_of(read_again[name]) != text_of(one["tree"]):
            raise _another(index, one["sql"])
    conditions = {text_of(renumbered(tree, numbers.__getitem__)) for tree in again["block"]["conjuncts"]}
    for condition in definition.where:
        if _is_told(condition.tree) and text_of(condition.tree) not in conditions:
            raise _another(index, condition.sql)


def _is_told(tree: Tree) -> bool:
    """Tell whether Spark has SQL for an expression. What it has none for is written in other words."""
    return name_of(tree) not in _IN_OTHER_WORDS and all(map(_is_told, children(tree)))


def _another(index: str, what: str) -> InvalidIndex:
    return InvalidIndex(
        f"view {index}: {what} means something else once it is written down as SQL, so that the view would not hold what the query "
        "gives; say it in other words (docs/guides/views.md says which)",
        detail="VIEW_FUNCTION",
    )
