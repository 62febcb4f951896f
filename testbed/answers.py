"""Answers of queries, and whether two of them are the same.

Rows are compared as a multiset, and their order as far as the query asks for one: the values of its ORDER BY follow each other in
the same way on both sides. Rows that tie with the last one of an answer cut off by LIMIT may be any of those that tie.

Values are compared exactly, but for two cases. Sums of floating-point numbers depend on the order of the addends, so floats may
differ by `FLOAT_TOLERANCE` of their size. DuckDB divides decimals (and so takes their mean) in floats, where Spark rounds to a
decimal of some scale: beside a float a decimal may be off by one unit of its last digit.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyspark.sql import SparkSession

FLOAT_TOLERANCE = 1e-9

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Order:
    """What an answer's order promises: it is sorted by `columns`, and holds no more than `limit` rows.

    `complete`: by nothing else. If it is not, nobody can tell from an answer which of its rows tie.
    """

    columns: tuple[str, ...]
    complete: bool
    limit: int | None


@dataclass(frozen=True)
class Answer:
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def of_spark(spark: "SparkSession", sql: str) -> Answer:
    frame = spark.sql(sql)
    return Answer(tuple(frame.columns), tuple(tuple(row) for row in frame.collect()))


def of_duckdb(duckdb: "DuckDBPyConnection", sql: str) -> Answer:
    # Where NULL is sorted to: as in Spark.
    duckdb.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
    done = duckdb.execute(sql)
    return Answer(tuple(column[0] for column in done.description or ()), tuple(done.fetchall()))


def order_of(sql: str, columns: Sequence[str]) -> Order:
    """The leading terms of the query's ORDER BY that are among the `columns` of its answer, by name or number, and its LIMIT."""
    import sqlglot
    from sqlglot import expressions as e

    query = sqlglot.parse_one(sql, read="spark")
    names = [column.lower() for column in columns]
    ordered, limited = query.args.get("order"), query.args.get("limit")
    by: list[str] = []
    for term in ordered.expressions if ordered else []:
        if isinstance(term.this, e.Literal) and term.this.is_int:
            by.append(names[int(term.this.name) - 1])
        elif isinstance(term.this, e.Column) and term.this.name.lower() in names:
            by.append(term.this.name.lower())
        else:
            break
    complete = ordered is None or len(by) == len(ordered.expressions)
    return Order(tuple(by), complete, int(limited.expression.name) if limited else None)


def without_limit(sql: str) -> str:
    """The same query, all of its answer."""
    return re.sub(r"\s+LIMIT\s+\d+\s*;?\s*$", "", sql, flags=re.IGNORECASE)


def differences(ours: Answer, theirs: Answer, order: Order) -> list[str]:
    """What is not the same, for people; empty if nothing."""
    if len(ours.columns) != len(theirs.columns):
        return [f"{len(ours.columns)} columns, not {len(theirs.columns)}"]
    if len(ours.rows) != len(theirs.rows):
        return [f"{len(ours.rows)} rows, not {len(theirs.rows)}"]
    keys = [_position(ours.columns, name) for name in order.columns]
    for number, (mine, other) in enumerate(zip(ours.rows, theirs.rows, strict=True)):
        if not all(same(mine[key], other[key]) for key in keys):
            return [f"row {number} is sorted otherwise: {_shown(mine, keys)}, not {_shown(other, keys)}"]
    certain = len(ours.rows) if order.limit != len(ours.rows) else _before_last_tie(ours.rows, theirs.rows, keys)
    exact, approximate = _kinds_of_columns(ours.rows + theirs.rows)
    pairs = zip(
        *(
            sorted(rows[:certain], key=lambda row: _sort_key(row, exact, approximate))
            for rows in (ours.rows, theirs.rows)
        ),
        strict=True,
    )
    return [f"{mine}, not {other}" for mine, other in pairs if not all(map(same, mine, other))][:5]


def same(a: object, b: object) -> bool:
    if isinstance(a, float) and isinstance(b, Decimal):
        return same(b, a)
    if isinstance(a, Decimal) and isinstance(b, float):
        unit = 1.000001 * 10.0 ** int(a.as_tuple().exponent)  # a little more than one, for what floats lose
        return math.isclose(float(a), b, rel_tol=FLOAT_TOLERANCE, abs_tol=unit)
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=FLOAT_TOLERANCE, abs_tol=1e-12) or (math.isnan(a) and math.isnan(b))
    return a == b


def _position(columns: Sequence[str], name: str) -> int:
    return [column.lower() for column in columns].index(name)


def _shown(row: Row, keys: Sequence[int]) -> Row:
    return tuple(row[key] for key in keys)


def _before_last_tie(ours: Sequence[Row], theirs: Sequence[Row], keys: Sequence[int]) -> int:
    """How many rows come before those that tie with the last one; what a LIMIT chose among these is its own affair."""
    end = len(ours)
    while end and all(same(rows[end - 1][key], rows[-1][key]) for rows in (ours, theirs) for key in keys):
        end -= 1
    return end


def _kinds_of_columns(rows: Sequence[Row]) -> tuple[list[int], list[int]]:
    columns = range(len(rows[0]) if rows else 0)
    approximate = {column for column in columns if any(isinstance(row[column], float) for row in rows)}
    return [column for column in columns if column not in approximate], sorted(approximate)


def _sort_key(row: Row, exact: Sequence[int], approximate: Sequence[int]) -> list[tuple[bool, Any]]:
    """Values that compare exactly come first, so that a tolerance cannot pair a row with another's neighbour."""
    settled = [(row[column] is not None, row[column]) for column in exact]
    return [*settled, *((row[column] is not None, row[column]) for column in approximate)]
