"""The rows of a view in Spark: DataFrame in, DataFrame out.

A view that groups has its groups twice: as a row for each group of each file, so that a file that is gone can be left out, and as a
row for each group of all files of a run, which are far fewer, and are read while no file is gone. Those have no file, and lie in
the first partition, all others in the rest.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from grebe.errors import CorruptIndex
from grebe.formats.spark_types import type_text
from grebe.indexes.classic import functions
from grebe.indexes.content.by_range import column
from grebe.indexes.content.copied import WRITER
from grebe.indexes.content.parts import parts_for
from grebe.indexes.content.ranges import numbers_landing_in
from grebe.indexes.kind import FILE_COLUMN, Arranged, Rows
from grebe.indexes.view.definition import Definition, Measure
from grebe.indexes.view.expressions import parsed
from grebe.indexes.view.spark_columns import spark_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ROWS_PER_FILE = 4_000_000
_FIRST = "t0"
_WHOLE = "_grebe_whole"
_OF_FIRST_PARTITION = re.compile(r"_0+\.gix$")


def arrange(definition: Definition, rows: Rows) -> Arranged:
    derived = rows_of(definition, rows.frame(), [rows.other(one) for one in definition.bases[1:]])
    _require_types(definition, derived)
    older = rows.older([*definition.fields, (FILE_COLUMN, "integer")])
    if older is not None:
        derived = derived.unionByName(older.where(column(FILE_COLUMN).isNotNull()))
    parts = parts_for(rows.facts.bytes_of([(name,) for name in sorted(definition.reads())]))
    grouped = definition.grouped
    laid = _laid(_with_groups_of_all_files(definition, derived), parts) if grouped else derived.repartition(parts)
    return Arranged(
        frame=laid.sortWithinPartitions(*(column(one.name) for one in definition.keys)),
        options={**WRITER, "maxRecordsPerFile": str(_ROWS_PER_FILE)},
        properties={"layout": {"buckets": 0, "bucket_by": [], "sort_by": [], "reason": "as the query groups its rows"}},
    )


def _require_types(definition: Definition, derived: "DataFrame") -> None:
    """Raise `CorruptIndex` if a column is not of the type that queries are told it has."""
    types = {field.name: type_text(field.dataType.jsonValue()) for field in derived.schema}
    for name, kind in definition.fields:
        if types[name] != kind:
            raise CorruptIndex(
                f"the column {name} of a view is {types[name]} and should be {kind}; create the view anew",
                detail="SPEC",
            )


def is_of_all_files(path: str) -> bool:
    """Whether a content file of a view that groups holds the groups of all files."""
    return _OF_FIRST_PARTITION.search(path) is not None


def rows_of(definition: Definition, frame: "DataFrame", others: "Sequence[DataFrame]") -> "DataFrame":
    """Of rows of the first table that carry the ids of their files, joined with the other tables."""
    joined, tables = joined_rows(definition, [frame, *others]), 1 + len(others)
    keys = [spark_column(parsed(one.sql, tables)).alias(one.name) for one in definition.keys]
    file = functions.col(f"{_FIRST}.{FILE_COLUMN}")
    if not definition.grouped:
        return joined.select(*keys, file)
    measures = [spark_column(parsed(one.sql, tables, True)).alias(one.name) for one in definition.measures]
    names = [column(name) for name, _ in definition.fields]
    return joined.groupBy(*keys, file).agg(*measures).select(*names, column(FILE_COLUMN))


def joined_rows(definition: Definition, frames: "Sequence[DataFrame]", how: str = "cross") -> "DataFrame":
    """Of rows of all tables, those that the view is about. `how`: `cross` or `inner`, which Spark tells apart."""
    joined = frames[0].alias(_FIRST)
    for number, other in enumerate(frames[1:], 1):
        joined = joined.join(other.alias(f"t{number}"), how=how)
    for condition in definition.where:
        joined = joined.where(spark_column(parsed(condition.sql, len(frames))))
    return joined


def _with_groups_of_all_files(definition: Definition, fine: "DataFrame") -> "DataFrame":
    whole = functions.explode(functions.array(functions.lit(False), functions.lit(True))).alias(_WHOLE)
    twice = fine.select("*", whole).withColumn(
        FILE_COLUMN, functions.when(~functions.col(_WHOLE), functions.col(FILE_COLUMN))
    )
    keys = [column(one.name) for one in definition.keys]
    merged = [_merged(one).alias(one.name) for one in definition.measures]
    return twice.groupBy(*keys, column(FILE_COLUMN)).agg(*merged)


def _merged(measure: Measure) -> "Column":
    own = column(measure.name)
    if measure.merge != "sum":
        return functions.min(own) if measure.merge == "min" else functions.max(own)
    total = functions.sum(own).cast(measure.type)
    if not measure.type.startswith("decimal"):
        return total
    # Outside of ANSI mode a sum that does not fit is NULL, and would be lost among others.
    lost = (functions.count(own) > 0) & total.isNull()
    problem = functions.raise_error(functions.lit(f"a sum does not fit {measure.type}")).cast(measure.type)
    return functions.when(lost, problem).otherwise(total)


def _laid(frame: "DataFrame", parts: int) -> "DataFrame":
    first, *others = (int(number) for number in numbers_landing_in(parts + 1))
    place = functions.pmod(functions.hash(*map(column, frame.columns)), functions.lit(parts)) + functions.lit(1)
    number = functions.element_at(functions.array(*map(functions.lit, others)), place)
    return frame.repartition(
        parts + 1, functions.when(column(FILE_COLUMN).isNull(), functions.lit(first)).otherwise(number)
    )
