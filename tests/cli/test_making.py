"""`grebe create`, `refresh`, `show`, `delete` and `restore`: the life of an index from the command line."""

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from grebe.cli import spark_work
from grebe.cli.main import main
from tests.indexes.covering_lake import write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = pa.table(
    {"id": pa.array(range(20), pa.int64()), "a,b": [str(n) for n in range(20)], "price": [n / 2 for n in range(20)]}
)


def grebe(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def told(*arguments: str) -> Any:
    result = grebe(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def table(tmp_path: Path) -> str:
    return write(tmp_path / "t", [TABLE])


@pytest.mark.spark
def test_an_index_is_created_shown_deleted_restored_and_refreshed(spark: "SparkSession", table: str) -> None:
    columns = ["--on", "id", "--include", "price,`a,b`"]
    (made,) = told("create", table, "by_id", "--kind", "covering", *columns, "--buckets", "4", "--where", "price > 1")
    assert (made["name"], made["columns"], made["rows"], made["state"]) == ("by_id", ["id"], 17, "ACTIVE")
    shown = told("show", table, "by_id")
    assert shown["properties"]["include"] == ["price", "`a,b`"]
    assert shown["properties"]["layout"]["buckets"] == 4
    assert told("delete", table, "by_id") == {"name": "by_id", "state": "DELETED"}
    assert [(i["name"], i["state"]) for i in told("list", table)] == [("by_id", "DELETED")]
    assert told("restore", table, "by_id") == {"name": "by_id", "state": "ACTIVE"}
    pq.write_table(TABLE, Path(table) / "more.parquet")
    assert told("list", table)[0]["files_stale"] == 1
    (refreshed,) = told("refresh", table)
    assert (refreshed["rows"], refreshed["files_stale"]) == (34, 0)
    (again,) = told("refresh", table, "by_id", "--mode", "full")
    assert again["version"] > refreshed["version"]
    (replaced,) = told("create", table, "by_id", "--kind", "COVERING", "--on", "price,id", "--no-lineage", "--replace")
    assert replaced["columns"] == ["price", "id"]
    assert replaced["properties"]["lineage"] is False


@pytest.mark.spark
def test_a_curve_is_chosen_by_an_option(spark: "SparkSession", table: str) -> None:
    given = ["--kind", "zorder", "--on", "id,price", "--include", "`a,b`"]
    (made,) = told("create", table, "box", *given, "--curve", "z")
    assert (made["kind"], made["columns"], made["properties"]["curve"]) == ("zorder", ["id", "price"], "z")
    refused = grebe("create", table, "other", *given, "--curve", "peano")
    assert refused.exit_code != 0
    assert "hilbert, z" in refused.output


@pytest.mark.spark
def test_people_get_a_table_and_sentences(spark: "SparkSession", table: str) -> None:
    result = grebe("refresh", table)
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "No index yet.")
    result = grebe("create", table, "by_id", "--kind", "covering", "--on", "id")
    assert result.exit_code == 0, result.output
    assert "by_id" in result.stdout
    shown = grebe("show", table, "by_id").stdout
    lines = {line.partition("  ")[0]: line.partition("  ")[2].strip() for line in shown.splitlines()}
    assert (lines["kind"], lines["columns"], lines["properties.layout.bucket by"]) == ("covering", "id", "id")
    assert "reading" not in shown
    assert grebe("delete", table, "by_id").stdout == "name   by_id\nstate  DELETED\n"


@pytest.mark.spark
def test_text_files_are_read_with_the_options_given(spark: "SparkSession", tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.csv").write_text("id;name\n1;a\n2;b\n", encoding="utf-8")
    reader = ["--format", "csv", "--read", "header=true", "--read", "sep=;", "--read", "inferSchema=true"]
    kind = ["--kind", "covering", "--on", "id", "--location", str(tmp_path / "elsewhere")]
    (made,) = told("create", str(tmp_path / "t"), "by_id", *kind, *reader)
    assert made["rows"] == 2
    assert not (tmp_path / "_grebe").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["create", "t", "i"],
        ["create", "t", "i", "--kind", "nonsense", "--on", "a"],
        ["create", "t", "i", "--kind", "covering"],
        ["create", "t", "i", "--kind", "covering", "--on", "a", "--buckets", "many"],
        ["create", "t", "i", "--kind", "covering", "--on", "a", "--conf", "no-pair"],
        ["create", "t", "--kind", "covering", "--on", "a"],
        ["refresh", "t", "--mode", "nonsense"],
        ["refresh"],
        ["delete", "t"],
    ],
)
def test_wrong_use_ends_with_2(arguments: list[str]) -> None:
    assert grebe(*arguments).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["delete", "TABLE", "i"], "has no indexes here"),
        (["restore", "TABLE", "i"], "has no indexes here"),
        (["show", "TABLE", "i"], "no index i"),
        (["create", "TABLE", "i", "--kind", "covering", "--on", " "], "INVALID_INDEX"),
    ],
)
def test_what_fails_ends_with_1_and_a_sentence(table: str, arguments: list[str], said: str) -> None:
    result = grebe(*(table if argument == "TABLE" else argument for argument in arguments))
    assert result.exit_code == 1
    assert said in result.stderr


def test_the_verbs_that_need_only_the_log_load_no_spark(table: str) -> None:
    code = f"""
import sys
from click.testing import CliRunner
from grebe.cli.main import main
for verb in ("show", "delete", "restore"):
    assert CliRunner().invoke(main, [verb, {table!r}, "i"]).exit_code == 1
print(sorted({{"pyspark", "py4j"}} & set(sys.modules)))
"""
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert result.stdout.splitlines()[-1] == "[]"


@pytest.mark.spark
def test_files_of_another_format_are_one_line(spark: "SparkSession", tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.csv").write_text("id\n1\n", encoding="utf-8")
    failed = grebe("create", str(tmp_path / "t"), "by_id", "--kind", "lookup", "--on", "id")
    assert failed.exit_code == 1
    assert "[TABLE_NOT_FOUND_NOT_READABLE]" in failed.stderr
    assert "format= if the files do not tell it" in failed.stderr


@pytest.mark.spark
def test_progress_is_that_of_sparks_tasks(spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> None:
    assert spark_work.tasks_of(spark) == (0, 0)
    seen: list[tuple[int, int]] = []
    looked = spark_work.tasks_of

    def look(session: "SparkSession") -> tuple[int, int]:
        seen.append(looked(session))
        return seen[-1]

    monkeypatch.setattr(spark_work, "tasks_of", look)
    monkeypatch.setattr(spark_work, "_LOOK_EVERY", 0.01)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with spark_work.progress(spark, "Counting"):
        spark.range(0, 3_000_000, 1, 6).selectExpr("sum(hash(id))").collect()
    assert max(tasks for _, tasks in seen) >= 6


def test_without_a_terminal_there_is_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with spark_work.progress(None, "Working"):  # type: ignore[arg-type]  # nobody asks it
        pass
    assert capsys.readouterr().err == ""
