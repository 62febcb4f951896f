"""How many times a plan shuffles and sorts, and how long it takes to make."""

import contextlib
import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import grebe
from bench.harness import Contestant, timed
from testbed.spark import configured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A line of a plan: the branches of the tree, the number of the code generation's stage, the name of the node.
_NODE = re.compile(r"^[\s:+|-]*(?:\*\(\d+\) )?(\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Work:
    exchanges: int
    sorts: int


def work_of(spark: "SparkSession", sql: str) -> Work:
    """Counted in the plan as Spark makes it before it runs, without adaptive execution: what is used again counts once."""
    printed = io.StringIO()
    with configured(spark, {"spark.sql.adaptive.enabled": "false"}), contextlib.redirect_stdout(printed):
        spark.sql(sql).explain()
    nodes = _NODE.findall(printed.getvalue())
    return Work(nodes.count("Exchange"), nodes.count("Sort"))


def planning(spark: "SparkSession", lake: "grebe.Lake", sql: str, with_indexes: bool) -> Contestant:
    """The seconds from the parsed query to the plan that would run."""
    frame: DataFrame

    def before() -> None:
        nonlocal frame
        lake.enabled = with_indexes
        frame = spark.sql(sql)

    return timed(lambda: frame._jdf.queryExecution().executedPlan(), before)
