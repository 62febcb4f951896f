"""Skipping and Sieve as Spark builds, refreshes and uses them: whatever happens to the files, answers are those of a plain scan."""

import logging
import shutil
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grebe
from grebe.errors import InvalidIndex
from grebe.indexes.kind import Kind
from grebe.indexes.sketches.protocol import Sketch
from grebe.maintenance.runs import runs_of
from testbed.spark import configured
from tests.indexes.covering_lake import log_of
from tests.maintenance.skipping_lake import (
    NESTED,
    NESTED_DDL,
    NESTED_PREDICATES,
    PREDICATES,
    SIEVES,
    SKETCHES,
    TEXT_DDL,
    by_arrow,
    by_spark,
    part,
    require_files,
    require_same,
    write,
)
from tests.spark.served import LENIENT, Served, serving

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BY_ROWS_ALONE = {"spark.sql.parquet.filterPushdown": "false", "spark.sql.orc.filterPushdown": "false"}
"""What Spark pushes down to Parquet loses rows by itself: NaN, which bounds leave out, and -0.0 beside a dictionary with 0.0."""

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("skipping")]


@pytest.fixture(scope="module")
def served(spark: "SparkSession") -> Iterator[Served]:
    with configured(spark, BY_ROWS_ALONE), serving(spark) as made:
        yield made


def test_answers_are_those_of_a_scan_of_parquet(served: Served, tmp_path: Path) -> None:
    """Some files by Arrow, one by Spark, one without rows."""
    folder = tmp_path / "t"
    write(folder, range(6))
    pq.write_table(part(9, rows=0), folder / "empty.parquet")
    again = served.spark.read.parquet(str(folder)).where("id < 3000").selectExpr("id + 100000 id", "* EXCEPT (id)")
    again.coalesce(1).write.mode("append").parquet(str(folder))
    bounds = grebe.Skipping("bounds", grebe.MinMax("n"), grebe.MinMax("d"))
    served.lake.table(str(folder)).create(grebe.Skipping("all", *SKETCHES, *NESTED), bounds, *SIEVES)
    served.view("t", folder)
    true = by_spark(served, served.spark.read.parquet(str(folder)), [*PREDICATES, *NESTED_PREDICATES])
    assert require_same(served, "t", true.some(2)) >= {"all", "bounds", "sieve_s", "sieve_dec"}
    pruned = require_files(folder, true)
    assert sum(pruned.values()) > 3 * len(pruned)


@pytest.mark.parametrize(("format", "sieve"), [("csv", 0), ("json", 1), ("orc", 2)])
def test_answers_are_those_of_a_scan_of_other_formats(served: Served, tmp_path: Path, format: str, sieve: int) -> None:
    write(tmp_path / "whole", range(6))
    nested = [] if format == "csv" else NESTED
    rows = served.spark.read.parquet(str(tmp_path / "whole"))
    rows = rows if nested else rows.drop("st")
    rows.repartitionByRange(6, "id").write.format(format).save(str(tmp_path / "t"))
    frame = served.spark.read.schema(NESTED_DDL if nested else TEXT_DDL).format(format).load(str(tmp_path / "t"))
    served.lake.table(frame).create(grebe.Skipping("all", *SKETCHES, *nested), SIEVES[sieve])
    frame.createOrReplaceTempView("other")
    true = by_spark(served, frame, [*PREDICATES, *(NESTED_PREDICATES if nested else [])])
    assert require_same(served, "other", true.some(9)) >= {"all"}
    assert sum(require_files(tmp_path / "t", true, format).values()) > 2 * len(true.ids)


def test_files_of_other_schemas_and_partitions_are_judged_alike(served: Served, tmp_path: Path) -> None:
    """A file lacks columns, another has narrower types; partitions are columns like others."""
    for number in range(6):
        table = part(number)
        if number == 1:
            table = table.select(["id", "n", "st"])
        if number == 2:
            narrow = {"id": table["id"].cast(pa.int32()), "x": table["x"].cast(pa.float32())}
            table = pa.table({**narrow, "s": table["s"], "d": table["d"]})
        place = tmp_path / "t" / f"p={number // 2}" / "q=a b"
        place.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, place / f"{number}.parquet")
    frame = served.spark.read.schema(NESTED_DDL + ", p int, q string").parquet(str(tmp_path / "t"))
    kinds = [
        grebe.Skipping("all", *SKETCHES, *NESTED, grebe.MinMax("p"), grebe.ValueList("q"), grebe.MinMax("id")),
        *SIEVES,
    ]
    served.lake.table(frame).create(*kinds)
    frame.createOrReplaceTempView("mixed")
    more = [
        "p = 1 AND s IS NULL",
        "p IS NULL OR n = 3",
        "q = 'a b' AND id = 2007",
        "q <> 'a b'",
        "id IN (1, 1003, 5029)",
    ]
    true = by_spark(served, frame, [*PREDICATES, *NESTED_PREDICATES, *more])
    assert require_same(served, "mixed", true.some(7, more)) >= {"all"}
    pruned = require_files(tmp_path / "t", true)
    assert pruned["id IN (1, 1003, 5029)"] == 3


def kinds() -> list[Kind]:
    sketches: list[Sketch] = [
        grebe.MinMax("n"),
        grebe.Bloom("s"),
        grebe.Ngram("s"),
        grebe.ValueList("d"),
        grebe.Intervals("x"),
    ]
    return [grebe.Skipping("sk", *sketches), grebe.Sieve("by_s", on="s", budget=0.3)]


def test_whatever_comes_and_goes_answers_stay_right(served: Served, tmp_path: Path) -> None:
    folder, away = tmp_path / "t", tmp_path / "away.parquet"
    write(folder, range(8))
    # A file that is moved away and back is the same by its size and time alone; its change time is another one.
    by_times = grebe.attach(
        served.spark, grebe.Config(hybrid_max_appended=1.0, hybrid_max_deleted=1.0, identity="times")
    )
    table = by_times.table(str(folder))
    table.create(*kinds())

    asked = cycle(["n = 31", "s LIKE '%row 11%'", "x BETWEEN 2.0 AND 8.05"])

    def require_right(covered: int, uncovered: int = 0) -> None:
        require_files(folder, by_arrow(folder, PREDICATES[::4]))
        answer = grebe.open(str(folder)).files("n >= 0 AND s >= 'a'")
        assert (answer.covered, answer.uncovered) == (covered, uncovered)
        served.view("grown", folder)
        query = f"SELECT id FROM grown WHERE {next(asked)}"
        assert served.run(query).rows == served.plain(query).rows

    require_right(8)
    for number in (8, 9, 10):
        write(folder, [number])
        require_right(number, 1)
        table.refresh()
        require_right(number + 1)
    assert max(len(runs_of(state)) for state in log_of(table.uri).state.indexes.values()) > 1
    table.optimize(mode="full")
    assert {len(runs_of(state)) for state in log_of(table.uri).state.indexes.values()} == {1}
    require_right(11)
    shutil.move(folder / "3.parquet", away)
    (folder / "5.parquet").unlink()
    require_right(9)
    table.refresh(mode="quick")
    assert {len(state.dormant) for state in log_of(table.uri).state.indexes.values()} == {2}
    shutil.move(away, folder / "3.parquet")
    write(folder, range(20, 27))
    require_right(10, 7)  # rows of the file that is back are there already
    table.refresh()
    assert {state.dormant for state in log_of(table.uri).state.indexes.values()} == {grebe.files.FileIds.of([])}
    require_right(17)
    assert {len(runs_of(state)) for state in log_of(table.uri).state.indexes.values()} == {1}
    table.refresh(mode="full")
    require_right(17)
    grebe.attach(served.spark, LENIENT)


def test_floats_and_text_that_is_no_utf_8_are_found(served: Served, tmp_path: Path) -> None:
    """A plan writes floats with few digits; text is whatever bytes Spark was given."""
    (tmp_path / "t").mkdir()
    for number in range(4):
        bytes_ = pa.array(
            [b"\xffa", b"a\xc3", b"abc", b"z" * 70 + b"\xff", b""][number:] + [b"own%d" % number] * number
        )
        text = pa.Array.from_buffers(pa.string(), len(bytes_), bytes_.buffers())
        floats = pa.array([0.1 + number, 0.2 + number, 3e-45 * (number + 1), 16777217.0 * number, None], pa.float32())
        table = pa.table({"id": [number * 10 + row for row in range(5)], "f": floats, "t": text})
        pq.write_table(table, tmp_path / "t" / f"{number}.parquet")
    of_text: list[Sketch] = [
        grebe.MinMax("t"),
        grebe.Bloom("t"),
        grebe.ValueList("t"),
        grebe.Ngram("t"),
        grebe.Intervals("t"),
    ]
    of_floats: list[Sketch] = [grebe.MinMax("f"), grebe.Bloom("f"), grebe.ValueList("f"), grebe.Intervals("f")]
    sieves = [grebe.Sieve(f"by_{name}", on=name, budget=1.0) for name in ("f", "t")]
    served.lake.table(str(tmp_path / "t")).create(grebe.Skipping("all", *of_text, *of_floats), *sieves)
    frame = served.spark.read.parquet(str(tmp_path / "t"))
    frame.createOrReplaceTempView("odd")
    asked = [
        "f = 0.1F",
        "f IN (float('0.1'), float('2.2'))",
        "f >= 3.2F AND f <= 3.2F",
        "f = float('3e-45')",
        "f < 0.1F",
    ]
    asked += ["t = 'abc'", "t > 'b'", "t < 'abd'", "t LIKE '%bc'", "t >= 'zz'", "t = 'own2'"]
    true = by_spark(served, frame, asked)
    assert require_same(served, "odd", true) >= {"all", "by_f", "by_t"}


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))


@pytest.mark.parametrize(
    "damage", [flip, Path.unlink, lambda file: file.write_bytes(b"")], ids=["flipped", "gone", "empty"]
)
def test_a_damaged_index_costs_one_warning_and_no_row(
    served: Served, tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[Path], object]
) -> None:
    folder = tmp_path / "t"
    write(folder, range(5))
    served.lake.table(str(folder)).create(*kinds())
    content = sorted((tmp_path / "_grebe" / "t" / "data" / "sk").glob("*/*.gix"))
    damage(next(file for file in content if file.name.startswith("part-")))
    with caplog.at_level(logging.WARNING):
        table = grebe.open(str(folder))
        for text, ids in by_arrow(folder, ["n = 31", "s LIKE '%row 11%'", "d IS NULL"]).ids.items():
            assert set(table.scan(text, columns=["id"])["id"].to_pylist()) == ids
    assert len([record for record in caplog.records if "index=sk" in record.getMessage()]) == 1
    assert not table.verify().ok or damage is flip
    assert {fault.index for fault in table.verify(deep=True).findings} == {"sk"}
    caplog.clear()
    served.view("hurt", folder)
    with caplog.at_level(logging.WARNING):
        for text in ("n = 31", "n = 11", "s = 'file 3 row 7'"):
            seen, plain = (
                served.run(f"SELECT id FROM hurt WHERE {text}"),
                served.plain(f"SELECT id FROM hurt WHERE {text}"),
            )
            assert seen.rows == plain.rows
            assert "sk" not in seen.used
    assert len([record for record in caplog.records if "sk" in record.getMessage()]) == 1


def test_a_column_of_another_collation_is_refused(served: Served, tmp_path: Path) -> None:
    frame = served.spark.sql("SELECT id, 'Grebe' COLLATE UTF8_LCASE AS c FROM range(3)")
    frame.write.parquet(str(tmp_path / "t"))
    read = served.spark.read.schema(frame.schema).parquet(str(tmp_path / "t"))
    table = served.lake.table(read)
    sketches = [grebe.MinMax, grebe.Bloom, grebe.ValueList, grebe.Ngram, grebe.Intervals]
    alone: list[Kind] = [grebe.Skipping("no", sketch("c")) for sketch in sketches]
    for kind in (*alone, grebe.Sieve("no", on="c"), grebe.Skipping("no", on="c")):
        with pytest.raises(InvalidIndex, match="collation"):
            table.create(kind)
    assert table.indexes() == []
    table.create(grebe.Skipping("yes", grebe.MinMax("id")))
    read.createOrReplaceTempView("collated")
    served.same("SELECT id FROM collated WHERE c = 'GREBE' AND id = 2", "yes")


def test_an_index_is_replaced_deleted_and_restored(served: Served, tmp_path: Path) -> None:
    write(tmp_path / "t", range(5))
    table = served.lake.table(str(tmp_path / "t"))
    table.create(grebe.Skipping("sk", grebe.MinMax("n")))
    with pytest.raises(grebe.IndexExists):
        table.create(grebe.Skipping("sk", grebe.Bloom("s")))
    table.create(grebe.Skipping("sk", grebe.Bloom("s")), replace=True)
    opened = grebe.open(str(tmp_path / "t"))
    assert opened.files("n = 31").index is None
    assert opened.files("s = 'file 3 row 7'").pruned == 4
    table.delete("sk")
    assert opened.reload().files("s = 'file 3 row 7'").pruned == 0
    served.view("replaced", tmp_path / "t")
    served.same("SELECT id FROM replaced WHERE s = 'file 3 row 7'")
    table.restore("sk")
    served.same("SELECT id FROM replaced WHERE s = 'file 3 row 7'", "sk")
    assert opened.reload().files("s = 'file 3 row 7'").pruned == 4
