"""What is secret about how a table is reached stays out of everything that Grebe writes, shows and logs."""

import contextlib
import gzip
import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import grebe
from grebe.cli.main import main
from grebe.errors import GrebeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("secrets")]

CANARIES = {name: f"CANARY{number}xUtnFEMIK7MDENG" for number, name in enumerate(("store", "key", "unknown", "signed"))}
OPTIONS = {
    "header": "true",
    "fs.s3a.secret.key": CANARIES["store"],
    "fs.s3a.endpoint": f"https://example.org/?sig={CANARIES['signed']}",
    "parquet.encryption.key.list": f"k:{CANARIES['key']}",
    "vendor.mode": CANARIES["unknown"],
}


def _found_in(text: str) -> list[str]:
    return [name for name, canary in CANARIES.items() if canary in text]


def _bytes_below(folder: Path) -> Iterator[tuple[Path, bytes]]:
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            yield path, data
            with contextlib.suppress(OSError, EOFError):
                yield path, gzip.decompress(data)


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_no_secret_of_a_reader_is_written_or_shown(
    spark: "SparkSession", tmp_path: Path, caplog: pytest.LogCaptureFixture, format: str
) -> None:
    caplog.set_level(logging.DEBUG, "grebe")
    place = str(tmp_path / "lake" / "t")
    spark.range(40).selectExpr("id", "id % 7 AS k").write.option("header", "true").format(format).save(place)
    lake = grebe.attach(spark, grebe.Config(record_workload=True))
    frame = spark.read.format(format).schema("id BIGINT, k BIGINT").options(**OPTIONS).load(place)
    table = lake.table(frame)
    made = table.create(
        grebe.Covering("by_k", on="k", include=["id"]), grebe.Skipping("skip_k", on="k"), grebe.Lookup("by_id", on="id")
    )
    query = frame.where("k = 3").select("id")
    assert len(query.collect()) == 6
    table.refresh(mode="full")
    said = [
        *(f"{one!r} {one} {one._repr_html_()}" for one in (*made, *table.indexes())),
        *map(repr, table.history()),
        repr(table),
        repr(lake),
        repr(table.verify(deep=True)),
        str(lake.explain(query)),
        lake.explain(query)._repr_html_(),
        json.dumps(lake.explain(query).to_dict(), default=str),
        *(f"{reason!r} {reason}" for reason in lake.why_not(spark.read.format(format).load(place))),
        *(str(row) for row in lake.workload(table).collect()),
    ]
    opened = grebe.open(place, format=format)
    with contextlib.suppress(GrebeError):
        said.append(repr(opened.get("id", 7)))
    said.extend([repr(opened), *map(repr, opened.indexes()), *map(repr, opened.history())])
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        for command in (["show", place, "by_k", "--json"], ["history", place, "--json"], ["list", place]):
            with contextlib.suppress(SystemExit):
                main(command)
    said.append(shown.getvalue())
    for text in (*said, caplog.text):
        assert _found_in(text) == [], text
    below = list(_bytes_below(tmp_path / "lake" / "_grebe"))
    assert len(below) > 5
    for path, data in below:
        assert _found_in(data.decode("latin-1")) == [], path


def test_a_table_whose_option_is_not_kept_says_so(spark: "SparkSession", tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    spark.range(5).write.option("header", "true").csv(place)
    frame = spark.read.schema("id BIGINT").options(header="true", vendorMode="x").csv(place)
    lake = grebe.attach(spark)
    lake.table(frame).create(grebe.Skipping("skip", on="id"))
    with pytest.raises(GrebeError, match=r"\[UNSUPPORTED_OPTION_NOT_KEPT\].*vendormode.*DataFrame"):
        lake.table(place)
    assert lake.table(frame).refresh()[0].files_stale == 0


@pytest.mark.parametrize("format", ["csv", "json"])
def test_a_record_that_cannot_be_read_is_not_shown(spark: "SparkSession", tmp_path: Path, format: str) -> None:
    place = tmp_path / "t"
    place.mkdir()
    record = '{"id": "CANARY", "k": 1}' if format == "json" else "CANARY,1"
    (place / f"a.{format}").write_text(f"{record}\n")
    frame = spark.read.schema("id BIGINT, k BIGINT").options(mode="FAILFAST").format(format).load(str(place))
    table = grebe.attach(spark).table(frame)
    for kind in (
        grebe.Lookup("a", on="id"),
        grebe.Covering("b", on="id"),
        grebe.Skipping("c", grebe.MinMax("id")),
        grebe.ZOrder("d", on=["id", "k"]),
        grebe.Sieve("e", on="id"),
        grebe.View("f", frame.where("id > 1")),
    ):
        try:
            made = repr(table.create(kind))  # a file whose records are read in several ways is left out
        except GrebeError as refused:
            made = str(refused)
        assert "CANARY" not in made, kind


@pytest.mark.parametrize("uri", ["s3a://CANARY@lake/t", "https://example.org/t?sig=CANARY"])
def test_a_signed_uri_is_no_name_of_a_table(spark: "SparkSession", uri: str, tmp_path: Path) -> None:
    lake = grebe.attach(spark)
    for call in (lambda: lake.table(uri), lambda: lake.table(str(tmp_path), location=uri), lambda: grebe.open(uri)):
        with pytest.raises(GrebeError, match="CREDENTIALS_IN_URI") as refused:
            call()
        assert "CANARY" not in str(refused.value)
