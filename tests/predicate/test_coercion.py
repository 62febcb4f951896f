"""Every pair of types is compared in the type that Spark compares it in, or refused where Spark refuses it."""

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grebe.errors import InvalidPredicate, Unsupported
from grebe.predicate.bind import bind
from grebe.predicate.evaluate import evaluate
from grebe.predicate.parse import parse
from grebe.predicate.tree import opaque_terms
from tests.predicate import oracle as spark_oracle
from tests.predicate.generators import FIELDS, Field, column_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core]

COLUMNS = [field for field in FIELDS if len(field.path) == 1 and field.path[0] != "s"]
TARGETS = [
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "decimal(10,2)",
    "decimal(38,10)",
    "string",
    "binary",
]
TARGETS += ["date", "timestamp", "timestamp_ntz"]
ROWS = 40
ZONE = "America/New_York"
# What Spark can cast and Grebe cannot: it leaves these to Spark.
ONLY_SPARK = {
    *product(("float", "double"), ("string", "decimal")),
    *product(("tinyint", "smallint", "int", "bigint"), ("timestamp", "binary")),
    *product(("float", "double", "decimal"), ("timestamp",)),
    *product(("timestamp",), ("tinyint", "smallint", "int", "float", "double", "decimal")),
    *product(("date", "timestamp", "timestamp_ntz"), ("string",)),  # only beyond the years 1 to 9999
    ("binary", "string"),
    ("decimal", "string"),  # only with more than six places
}


def pair_table() -> pa.Table:
    """Every column walks through its pool at a stride of its own, so that pairs of columns meet in many ways."""

    def values(position: int, field: Field) -> list[object]:
        pool = [*field.pool, None]
        return [pool[(row * (position % 5 + 1) + position) % len(pool)] for row in range(ROWS)]

    return pa.table({field.path[0]: column_of(field.kind, values(i, field)) for i, field in enumerate(COLUMNS)})


@pytest.mark.parametrize("ansi", [True, False], ids=["ansi", "legacy"])
def test_every_pair_of_columns(oracle: "SparkSession", tmp_path: Path, ansi: bool) -> None:
    table = pair_table()
    answers: dict[str, spark_oracle.Answer] = {}
    # One text a pair of types: asking Spark for an error takes long.
    refused: dict[object, str] = {}
    failing: dict[object, str] = {}
    for (one, other), form in product(product(COLUMNS, repeat=2), ("{} = {}", "{} < {}", "{} <=> {}", "{} IN ({})")):
        text = form.format(one.path[0], other.path[0])
        try:
            bound = bind(parse(text), table.schema, ansi=ansi, time_zone=ZONE)
            answers[text] = evaluate(table, bound).to_pylist()
        except Unsupported:
            continue
        except InvalidPredicate as error:
            errors = refused if error.code == "INVALID_PREDICATE_TYPE_MISMATCH" else failing
            errors[
                frozenset((one.kind.name, other.kind.name)),
                form if "boolean" in (one.kind.name, other.kind.name) else "",
            ] = text
    with spark_oracle.settings(oracle, spark__sql__ansi__enabled=str(ansi).lower(), spark__sql__session__timeZone=ZONE):
        frame = spark_oracle.local_frame(oracle, table, tmp_path)
        texts = list(answers)
        for start in range(0, len(texts), 200):
            part = texts[start : start + 200]
            for text, expected in zip(part, spark_oracle.ask(frame, part), strict=True):
                assert answers[text] == expected, text
        for text in refused.values():
            assert str(spark_oracle.failure(frame, text)).startswith("DATATYPE_MISMATCH"), text
        for text in failing.values():
            assert str(spark_oracle.failure(frame, text)).startswith("CAST_INVALID_INPUT"), text
    assert len(answers) > 450
    assert len(refused) > 50
    assert bool(failing) == ansi


def evaluates(table: pa.Table, cast: str, ansi: bool) -> bool:
    try:
        evaluate(table, bind(parse(f"{cast} IS NULL"), table.schema, ansi=ansi, time_zone=ZONE))
    except Unsupported:
        return False
    return True


@pytest.mark.parametrize("ansi", [True, False], ids=["ansi", "legacy"])
def test_casts_have_the_values_of_spark(oracle: "SparkSession", tmp_path: Path, ansi: bool) -> None:
    """Spark writes each cast into a column; casting again must give the same values, NULL where one does not fit."""
    from pyspark.sql import functions

    table = pair_table()
    function = "TRY_CAST" if ansi else "CAST"
    casts = [f"{function}({field.path[0]} AS {target})" for field, target in product(COLUMNS, TARGETS)]
    ours = {f"c{index}": cast for index, cast in enumerate(casts) if evaluates(table, cast, ansi)}
    with spark_oracle.settings(oracle, spark__sql__session__timeZone=ZONE, spark__sql__ansi__enabled=str(ansi).lower()):
        frame = spark_oracle.local_frame(oracle, table, tmp_path)
        columns = [functions.expr(cast).alias(name) for name, cast in ours.items()]
        with spark_oracle.settings(oracle, spark__sql__parquet__outputTimestampType="TIMESTAMP_MICROS"):
            frame.select("*", *columns).coalesce(1).write.parquet((tmp_path / "cast").as_uri())
    cast_by_spark = pq.read_table(next((tmp_path / "cast").glob("*.parquet")))
    for name, cast in ours.items():
        bound = bind(parse(f"{name} <=> {cast}"), cast_by_spark.schema, ansi=ansi, time_zone=ZONE)
        assert not opaque_terms(bound)
        assert evaluate(cast_by_spark, bound).to_pylist() == [True] * ROWS, cast
    assert len(ours) > 120


def test_casts_fail_where_those_of_spark_do(oracle: "SparkSession", tmp_path: Path) -> None:
    table = pair_table()
    fits: dict[str, spark_oracle.Answer] = {}
    fails: dict[tuple[str, str], str] = {}
    only_spark: dict[tuple[str, str], str] = {}
    for field, target in product(COLUMNS, TARGETS):
        text = f"CAST({field.path[0]} AS {target}) IS NULL"
        try:
            fits[text] = evaluate(table, bind(parse(text), table.schema, time_zone=ZONE)).to_pylist()
        except InvalidPredicate:
            fails[field.kind.name, target] = text
        except Unsupported:
            only_spark[field.kind.name, target.partition("(")[0]] = text
    with spark_oracle.settings(oracle, spark__sql__session__timeZone=ZONE, spark__sql__ansi__enabled="true"):
        frame = spark_oracle.local_frame(oracle, table, tmp_path)
        assert spark_oracle.ask(frame, list(fits)) == list(fits.values())
        for text in fails.values():
            assert str(spark_oracle.failure(frame, text)).startswith(("CAST_", "NUMERIC_VALUE_OUT_OF_RANGE")), text
        for pair, text in only_spark.items():
            assert pair in ONLY_SPARK or str(spark_oracle.failure(frame, text)).startswith("DATATYPE_MISMATCH"), text
    assert min(len(fits), len(fails), len(only_spark)) > 20
