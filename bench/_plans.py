"""How many times a plan shuffles and sorts."""

import contextlib
import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from testbed.spark import configured

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
