"""Random text, some of it malformed, under several dialects and modes: what a query gives with indexes it gives without."""

import contextlib
import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import grebe
from tests.spark.served import Served

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("spark ambiguous")]
SCHEMA = "a int, b string, c double, d date"
COLUMNS = ("a", "b", "c", "d")
READERS: dict[str, tuple[str, str, dict[str, str]]] = {
    "csv with a separator of two characters": ("csv", SCHEMA, {"sep": "||"}),
    "csv with a corrupt record column": ("csv", f"{SCHEMA}, _corrupt_record string", {"sep": "||"}),
    "csv over several lines": ("csv", SCHEMA, {"multiLine": "true"}),
    "csv with a header": ("csv", SCHEMA, {"header": "true", "mode": "PERMISSIVE", "escape": '"'}),
    "csv that fails": ("csv", SCHEMA, {"mode": "FAILFAST"}),
    "json": ("json", SCHEMA, {}),
    "json with a corrupt record column": ("json", f"{SCHEMA}, _corrupt_record string", {}),
    "json that fails": ("json", SCHEMA, {"mode": "FAILFAST"}),
}
QUICK = ("csv with a separator of two characters", "json")
FILTERS = ("b = 'x'", "a = 3", "a IS NULL", "c > 1", "d = DATE '2024-01-02'", "b IS NOT NULL AND a >= 0")


def _csv(chance: random.Random, options: dict[str, str], faults: float) -> str:
    separator = options.get("sep", ",")

    def line() -> str:
        fields = [str(chance.randrange(5)), chance.choice("xyz"), chance.choice(("1.5", "2", "NaN")), "2024-01-02"]
        if chance.random() < faults:
            place = chance.randrange(4)
            odd = ('"x', 'x"', f'"p{separator}q"', "no", "", '""', '"x\\""', '"x\\\\"', " ", "\\", '"a""b"')
            fields[place] = chance.choice(odd)
        if chance.random() < faults / 2:
            fields = fields[: chance.randrange(1, 4)] if chance.random() < 0.5 else [*fields, "more"]
        return separator.join(fields)

    head = [separator.join(COLUMNS)] if options.get("header") else []
    return "\n".join([*head, *(line() for _ in range(40))]) + "\n"


def _json(chance: random.Random, faults: float) -> str:
    def line() -> str:
        record = {"a": chance.randrange(5), "b": chance.choice("xyz"), "c": 1.5, "d": "2024-01-02"}
        text = json.dumps(record)
        if chance.random() < faults:
            wrong, twice = text.replace('"a": ', '"a": "no", "z": '), f'{text[:-1]}, "a": 3}}'
            text = chance.choice((text[:-3], wrong, twice, "[]", "5", "{}", "null"))
        return text

    return "\n".join(line() for _ in range(40)) + "\n"


def _outcome(frame: "DataFrame") -> Any:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        return sorted(map(repr, frame.collect()))
    except (PySparkException, Py4JJavaError):
        return "an error"


@pytest.mark.parametrize(
    "reader", [pytest.param(one, marks=[] if one in QUICK else pytest.mark.soak) for one in READERS]
)
def test_random_text_is_answered_alike_with_indexes_and_without(served: Served, tmp_path: Path, reader: str) -> None:
    format, schema, options = READERS[reader]
    chance = random.Random(reader)
    folder = tmp_path / "t"
    folder.mkdir()
    for number, faults in enumerate((0.0, 0.0, 0.02, 0.2)):
        text = _csv(chance, options, faults) if format == "csv" else _json(chance, faults)
        (folder / f"{number}.{format}").write_text(text)
    table = served.spark.read.schema(schema).options(**options).format(format).load(str(folder))
    with contextlib.suppress(*([grebe.GrebeError] if options.get("mode") == "FAILFAST" else [])):
        served.lake.table(table).create(grebe.Covering("cov", on="b", include=["a", "c", "d"], buckets=2))
    with contextlib.suppress(*([grebe.GrebeError] if options.get("mode") == "FAILFAST" else [])):
        served.lake.table(table).create(grebe.Skipping("skip", grebe.MinMax("a"), grebe.ValueList("b")))
    assert options.get("mode") == "FAILFAST" or all(one.files_covered > 1 for one in served.lake.table(table).indexes())
    frames = [table.where(text).select(*some) for text in FILTERS for some in (("b",), COLUMNS)]
    frames += [
        table.selectExpr("count(a)", "min(b)", "max(d)"),
        table.selectExpr("count(*)"),
        table.groupBy("b").count(),
    ]
    with_indexes = [_outcome(frame) for frame in frames]
    served.lake.enabled = False
    try:
        plain = [_outcome(frame.select("*")) for frame in frames]
    finally:
        served.lake.enabled = True
    assert [number for number, (one, other) in enumerate(zip(with_indexes, plain, strict=True)) if one != other] == []
