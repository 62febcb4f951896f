"""Logs that somebody forged, and sealed as real ones are: nothing that they say is executed, and other places are not read."""

import contextlib
import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import grebe
from grebe.errors import CorruptIndex, GrebeError, InvalidIndex, Unsupported
from grebe.formats import Column, Reading
from grebe.indexes.view.definition import Definition
from grebe.log import codec
from grebe.spark.views import definition_of, frame_of_base, require_allowed_bases
from tests.spark.served import Served, serving, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core]
QUERY = "SELECT shop, sum(price) FROM sales GROUP BY shop"
NEEDLE = "SELECT shop, price FROM sales WHERE price = 30"


@pytest.fixture(scope="module")
def served(spark: "SparkSession") -> Iterator[Served]:
    with serving(spark) as served:
        yield served


def _rows(start: int) -> dict[str, list[object]]:
    return {"shop": [n % 3 for n in range(start, start + 30)], "price": list(range(start, start + 30))}


@pytest.fixture
def lake(served: Served, tmp_path: Path) -> Path:
    write(tmp_path / "sales", _rows(0))
    write(tmp_path / "hr", {"salary": [4711]})
    query = f"SELECT shop, sum(price) AS taken, count(*) AS n FROM parquet.`{tmp_path / 'sales'}` WHERE price >= 0 GROUP BY shop"
    served.lake.table(str(tmp_path / "sales")).create(
        grebe.View("v", query),
        grebe.Covering("c", on="price", include="shop", where="price >= 0"),
        grebe.Skipping("s", on="price"),
    )
    # There is something to refresh.
    write(tmp_path / "sales", _rows(100))
    served.view("sales", tmp_path / "sales")
    return tmp_path


def _forge(lake: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the specs of all indexes wherever the log has them, and seal it anew, entry by entry."""
    log = lake / "_grebe" / "sales" / "log"
    digest = ""
    for place in sorted(log.glob("0*.json")):
        body = json.loads(place.read_bytes().partition(b"\n")[0])
        for one in body["changes"]:
            for spec in [one["spec"]] if "spec" in one else one.get("specs", {}).values():
                change(spec)
        data, digest = codec._seal({**body, "previous": digest})
        place.write_bytes(data)
    hint = log / "latest.json.gz"
    body = json.loads(gzip.decompress(hint.read_bytes()).partition(b"\n")[0])
    for index in body["state"]["indexes"].values():
        change(index["spec"])
    hint.write_bytes(gzip.compress(codec._seal({**body, "digest": digest})[0]))


def _executed(canary: Path) -> str:
    """What shows on any class path that a method was called by its name: a property of the JVM."""
    return f"java_method('java.lang.System', 'setProperty', 'grebe.canary', '{canary}')"


def _in_view(part: str, sql: str) -> Callable[[dict[str, Any]], None]:
    def change(spec: dict[str, Any]) -> None:
        if spec["kind"] == "view":
            spec["properties"]["definition"][part][0]["sql"] = sql

    return change


def _in_where(sql: str) -> Callable[[dict[str, Any]], None]:
    def change(spec: dict[str, Any]) -> None:
        if spec["kind"] == "covering":
            spec["properties"]["where"] = sql

    return change


def _in_reading(**changed: Any) -> Callable[[dict[str, Any]], None]:
    def change(spec: dict[str, Any]) -> None:
        spec["properties"]["reading"].update(changed)
        for base in spec["properties"].get("definition", {}).get("bases", ()):
            base["reading"].update(changed)

    return change


_UDT = json.dumps(
    {
        "type": "udt",
        "pyClass": "__main__.Any",
        # The pickle of a call of `os.system`, which would make a file `canary` in the working folder.
        "serializedClass": "Y3Bvc2l4CnN5c3RlbQooUyd0b3VjaCBjYW5hcnknCnRSLg==",
        "sqlType": "long",
    }
)
FORGED: dict[str, Callable[[str], Callable[[dict[str, Any]], None]]] = {
    "a condition of a view": lambda call: _in_view("where", f"({call} IS NOT NULL)"),
    "a key of a view": lambda call: _in_view("keys", call),
    "a measure of a view": lambda call: _in_view("measures", f"max({call})"),
    "a measure with a reflection": lambda call: _in_view("measures", call.replace("java_method", "reflect")),
    "a key with a subquery": lambda call: _in_view("keys", f"(SELECT {call})"),
    "a condition of an index": lambda call: _in_where(f"{call} IS NOT NULL"),
    "a condition behind a real one": lambda call: _in_where(f"price >= 0 AND {call} IS NOT NULL"),
    "a type that is a class": lambda call: _in_reading(
        columns=[{"name": "price", "type": _UDT}, {"name": "shop", "type": _UDT}]
    ),
    "a type that is SQL": lambda call: _in_reading(columns=[{"name": "price", "type": f"decimal(1,1)) , {call}"}]),
    "a format that is a class": lambda call: _in_reading(format="org.apache.spark.sql.execution.datasources.v2.Evil"),
    "an option that names other files": lambda call: _in_reading(options={"path": "/etc"}),
}


@pytest.mark.parametrize("forged", FORGED)
def test_nothing_that_a_forged_log_says_is_executed(
    served: Served, lake: Path, forged: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = lake / "canary"
    monkeypatch.chdir(lake)
    system = served.spark._jvm.java.lang.System  # type: ignore[union-attr] # there is one
    system.clearProperty("grebe.canary")
    _forge(lake, FORGED[forged](_executed(canary)))
    table = served.lake.table(str(lake / "sales"))
    for verb in (
        table.refresh,
        table.optimize,
        table.verify,
        lambda: table.verify(deep=True),
        lambda: table.refresh(mode="full"),
        table.vacuum,
        table.indexes,
        lambda: grebe.open(str(lake / "sales")).scan("price = 30"),
    ):
        with contextlib.suppress(GrebeError):
            verb()
    for query in (QUERY, NEEDLE):
        served.same_rows(query)
    assert system.getProperty("grebe.canary") is None
    assert not canary.exists()


def test_a_view_that_somebody_forged_is_set_aside_with_a_reason(served: Served, lake: Path) -> None:
    _forge(lake, _in_view("keys", _executed(lake)))
    served.same(QUERY)
    assert served.reasons(QUERY)["v"] == "SET_ASIDE"
    with pytest.raises(
        CorruptIndex, match=r"\[CORRUPT_INDEX_VIEW_EXPRESSION\].*java_method.*nothing of it was executed"
    ):
        served.lake.table(str(lake / "sales")).refresh("v")
    served.lake.table(str(lake / "sales")).delete("v")
    served.lake.table(str(lake / "sales")).refresh()


@pytest.mark.parametrize("elsewhere", ["http://127.0.0.1:9/hr", "file:///etc", "s3://other/hr", "jdbc://host/x"])
def test_a_view_that_joins_a_table_elsewhere_opens_nothing_there(served: Served, lake: Path, elsewhere: str) -> None:
    def change(spec: dict[str, Any]) -> None:
        if spec["kind"] == "view":
            bases = spec["properties"]["definition"]["bases"]
            bases.append({**bases[0], "uri": elsewhere, "files": "x"})

    _forge(lake, change)
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_OUTSIDE_ROOTS\].*allowed_roots"):
        served.lake.table(str(lake / "sales")).refresh("v")
    served.same_rows(QUERY)


def test_a_view_that_joins_a_pattern_of_folders_opens_nothing_there(served: Served, lake: Path) -> None:
    """Hadoop takes braces apart only after we have looked where the path leads."""
    write(lake / "inner" / "sales", _rows(0))
    write(lake / "inner" / "other", {"shop": [0, 1, 2], "price": [1, 2, 3]})
    paths = [str(lake / "inner" / name) for name in ("sales", "other")]
    query = f"SELECT b.price FROM parquet.`{paths[0]}` a JOIN parquet.`{paths[1]}` b ON a.shop = b.shop"
    definition = definition_of(served.spark, query, f"file://{paths[0]}", "v")
    elsewhere = f"file://{lake}/inner/{{../..,y}}/{lake.name}/hr"
    forged = replace(
        definition,
        bases=(
            definition.bases[0],
            replace(definition.bases[1], uri=elsewhere, reading=_with_salaries(definition.bases[1].reading)),
        ),
    )
    again = Definition.from_dict("v", forged.to_dict())
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_OUTSIDE_ROOTS\].*pattern of other paths"):
        require_allowed_bases(again, definition.bases[0].uri, ())
    assert frame_of_base(served.spark, again.bases[1]).collect() == []


def _with_salaries(reading: Reading) -> Reading:
    return replace(reading, columns=(Column("salary", "long"),))


@pytest.mark.parametrize(
    "call",
    ["java_method('java.lang.Math', 'random')", "reflect('java.lang.Math', 'random')", "input_file_name()", "uuid()"],
)
def test_a_view_with_a_function_that_may_not_be_stored_is_refused(served: Served, lake: Path, call: str) -> None:
    query = f"SELECT {call} AS k, count(*) FROM parquet.`{lake / 'sales'}` GROUP BY 1"
    with pytest.raises(InvalidIndex, match="VIEW_"):
        served.lake.table(str(lake / "sales")).create(grebe.View("w", query))


def test_the_function_that_a_view_may_not_hold_is_named(served: Served, lake: Path) -> None:
    query = f"SELECT from_json(string(shop), 'a INT').a AS k, count(*) FROM parquet.`{lake / 'sales'}` GROUP BY 1"
    with pytest.raises(InvalidIndex, match=r"\[INVALID_INDEX_VIEW_FUNCTION\].*from_json"):
        served.lake.table(str(lake / "sales")).create(grebe.View("w", query))
