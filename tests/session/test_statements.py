"""The SQL of an attached session: every statement through `spark.sql`, its rows, its errors, and what stays Spark's."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import grebe
from testbed.spark import configured
from tests.spark.served import LENIENT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("session statements")]


@pytest.fixture
def lake(spark: "SparkSession") -> Iterator[grebe.Lake]:
    attached = grebe.attach(spark, LENIENT)
    yield attached
    attached.detach()


@pytest.fixture(scope="module")
def written(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("written") / "t"
    frame = spark.range(1000).selectExpr("id", "id % 10 AS a", "CAST(id AS STRING) AS s")
    frame.repartition(3).write.parquet(str(made))
    return made


@pytest.fixture
def path(written: Path, tmp_path: Path) -> Path:
    return shutil.copytree(written, tmp_path / "t")


def rows(spark: "SparkSession", statement: str) -> list[dict[str, Any]]:
    return [row.asDict() for row in spark.sql(statement).collect()]


@pytest.mark.core
def test_the_life_of_an_index(spark: "SparkSession", lake: grebe.Lake, path: Path) -> None:
    table = f"parquet.`{path}`"
    (made,) = rows(
        spark, f"CREATE INDEX by_a ON {table} USING covering (a) INCLUDE (id) WHERE id >= 10 OPTIONS (buckets = 4)"
    )
    assert (made["name"], made["kind"], made["state"], made["columns"]) == ("by_a", "covering", "ACTIVE", ["a"])
    assert (made["rows"], made["files_covered"], made["files_stale"]) == (990, 3, 0)
    rows(spark, f"CREATE INDEX by_id ON {table} USING lookup (id)")
    assert rows(spark, f"CREATE INDEX IF NOT EXISTS by_id ON {table} USING lookup (s)") == []
    (replaced,) = rows(spark, f"CREATE OR REPLACE INDEX by_id ON {table} USING lookup (s)")
    assert replaced["columns"] == ["s"]
    for shown in (rows(spark, f"SHOW INDEXES ON {table}"), rows(spark, "SHOW INDEXES")):
        assert [one["name"] for one in shown if one["table"].endswith(str(path))] == ["by_a", "by_id"]
    facts = {row["fact"]: row["value"] for row in rows(spark, f"DESCRIBE INDEX by_a ON {table}")}
    assert (facts["kind"], facts["properties.include"], facts["properties.layout.buckets"]) == ("covering", "id", "4")
    assert (facts["files_stale"], "properties.reading.format" in facts) == ("0", False)

    spark.range(1000, 1100).selectExpr("id", "id % 10 AS a", "CAST(id AS STRING) AS s").write.mode("append").parquet(
        str(path)
    )
    assert all(one["files_stale"] > 0 for one in rows(spark, f"SHOW INDEXES ON {table}"))
    assert [one["name"] for one in rows(spark, f"REFRESH INDEX by_a ON {table}")] == ["by_a"]
    assert [one["name"] for one in rows(spark, f"REFRESH INDEXES ON {table} QUICK")] == ["by_a", "by_id"]
    assert [one["rows"] for one in rows(spark, f"REFRESH INDEXES by_a ON {table} FULL")] == [1090]
    assert [one["name"] for one in rows(spark, f"OPTIMIZE INDEXES ON {table} FULL")] == []
    assert rows(spark, f"VERIFY INDEXES ON {table} DEEP") == []
    assert rows(spark, f"REPAIR INDEXES ON {table}") == []
    assert rows(spark, f"CANCEL INDEX by_a ON {table}") == []

    assert [one["state"] for one in rows(spark, f"DROP INDEX by_a ON {table}")] == ["DELETED"]
    assert rows(spark, f"DROP INDEX IF EXISTS nothing ON {table}") == []
    assert [one["state"] for one in rows(spark, f"RESTORE INDEX by_a ON {table}")] == ["ACTIVE"]
    rows(spark, f"DROP INDEX by_a ON {table}")
    (rehearsed,) = rows(spark, f"VACUUM INDEX by_a ON {table} DRY RUN")
    assert (rehearsed["indexes"], rehearsed["dry_run"]) == (["by_a"], True)
    (gone,) = rows(spark, f"VACUUM INDEX by_a ON {table}")
    assert rehearsed["waiting"] == gone["waiting"]
    assert (gone["indexes"], gone["objects"]) == (["by_a"], 0)
    assert gone["waiting"] > 0
    assert rows(spark, f"VACUUM INDEXES ON {table}")[0]["indexes"] == []
    history = rows(spark, f"SHOW INDEX HISTORY ON {table}")
    assert [entry["number"] for entry in history] == list(range(len(history)))
    assert history[0]["action"] == "create table"


def test_a_curve_is_chosen_among_the_options(spark: "SparkSession", lake: grebe.Lake, path: Path) -> None:
    table = f"parquet.`{path}`"
    (made,) = rows(spark, f"CREATE INDEX box ON {table} USING ZOrder (a, id) INCLUDE (s) OPTIONS (curve = 'z')")
    assert (made["kind"], made["columns"]) == ("zorder", ["a", "id"])
    facts = {row["fact"]: row["value"] for row in rows(spark, f"DESCRIBE INDEX box ON {table}")}
    assert (facts["properties.curve"], facts["properties.include"]) == ("z", "s")
    with pytest.raises(Exception, match="hilbert, z"):
        spark.sql(f"CREATE INDEX other ON {table} USING zorder (a, id) OPTIONS (curve = 'peano')")


def test_a_layout_is_learned_from_the_queries_among_the_options(
    spark: "SparkSession", lake: grebe.Lake, path: Path
) -> None:
    table = f"parquet.`{path}`"
    (made,) = rows(spark, f"CREATE INDEX learned ON {table} USING layout OPTIONS (queries = 'a > 1 AND id < 7; a = 3')")
    assert (made["kind"], made["columns"]) == ("layout", ["a", "id"])
    facts = {row["fact"]: row["value"] for row in rows(spark, f"DESCRIBE INDEX learned ON {table}")}
    assert facts["properties.queries"] == "a > 1L AND id < 7L, 1.0, a = 3L, 1.0"
    assert "properties.tree" not in facts
    (made,) = rows(spark, f"CREATE INDEX of_a ON {table} USING layout (a) INCLUDE (s) OPTIONS (queries = 'a > 1')")
    assert made["columns"] == ["a"]
    with pytest.raises(Exception, match="column b is not there"):
        spark.sql(f"CREATE INDEX other ON {table} USING layout OPTIONS (queries = 'b = 1')")


@pytest.mark.core
def test_what_queries_use_is_explained(spark: "SparkSession", lake: grebe.Lake, path: Path) -> None:
    rows(spark, f"CREATE INDEX by_a ON parquet.`{path}` USING covering (a) INCLUDE (id)")
    query = f"SELECT id FROM parquet.`{path}` WHERE a = 3"
    assert rows(spark, f"EXPLAIN INDEXES {query};") == [{"plan": str(lake.explain(query))}]
    (verbose,) = rows(spark, f"EXPLAIN INDEXES VERBOSE {query}")
    assert "Plan with indexes" in verbose["plan"]


@pytest.mark.core
def test_names_of_the_catalog(spark: "SparkSession", lake: grebe.Lake, path: Path) -> None:
    spark.sql("CREATE DATABASE `select`")
    try:
        spark.sql(f"CREATE TABLE `select`.`2020` USING parquet LOCATION '{path}'")
        (made,) = rows(spark, "CREATE INDEX `by-a` ON TABLE `select`.`2020` USING lookup (a)")
        assert (made["name"], made["table"]) == ("by-a", path.as_uri())
        spark.sql("USE `select`")
        assert [one["name"] for one in rows(spark, "SHOW INDEXES ON `2020`")] == ["by-a"]
        assert [one["state"] for one in rows(spark, "drop index `by-a` on spark_catalog.`select`.`2020`")] == [
            "DELETED"
        ]
    finally:
        spark.sql("USE default")
        spark.sql("DROP DATABASE `select` CASCADE")


def test_tables_of_delta_and_iceberg(spark: "SparkSession", lake: grebe.Lake, tmp_path: Path) -> None:
    spark.range(100).write.format("delta").save(str(tmp_path / "delta"))
    spark.sql("CREATE TABLE ice.db.said USING iceberg AS SELECT id FROM range(100)")
    try:
        for name in (f"delta.`{tmp_path / 'delta'}`", "ice.db.said"):
            (made,) = rows(spark, f"CREATE INDEX by_id ON {name} USING lookup (id)")
            assert (made["state"], made["rows"]) == ("ACTIVE", 100)
            spark.sql(f"INSERT INTO {name} SELECT id FROM range(100, 110)")
            assert [one["rows"] for one in rows(spark, f"REFRESH INDEXES ON {name}")] == [110]
    finally:
        spark.sql("DROP TABLE ice.db.said")


def test_the_statements_of_others_are_theirs(spark: "SparkSession", lake: grebe.Lake, tmp_path: Path) -> None:
    """A table may be called `index`, and the extensions of Delta Lake and Iceberg read their own statements."""
    spark.sql("CREATE TABLE index (id BIGINT) USING delta")
    try:
        spark.sql("INSERT INTO index VALUES (1), (2)")
        assert spark.sql("OPTIMIZE index").columns == ["path", "metrics"]
        assert "path" in spark.sql("VACUUM index RETAIN 200 HOURS DRY RUN").columns
        assert rows(spark, "DESCRIBE index")[0]["col_name"] == "id"
        spark.sql("RESTORE index TO VERSION AS OF 0")
        assert rows(spark, "SELECT * FROM index") == []
        spark.sql("REFRESH index")
        spark.sql("REFRESH TABLE index")
        spark.sql("CREATE TABLE ice.db.evolves (a INT, b INT) USING iceberg")
        spark.sql("ALTER TABLE ice.db.evolves ADD PARTITION FIELD b")
        spark.sql("CALL ice.system.rewrite_data_files(table => 'db.evolves')")
    finally:
        spark.sql("DROP TABLE IF EXISTS index")
        spark.sql("DROP TABLE IF EXISTS ice.db.evolves")


@pytest.mark.core
@pytest.mark.parametrize(
    "start",
    [
        " " * 5000,
        "\n" * 20_000,
        "-- a line\n" * 20_000,
        "/* a comment */\n" * 20_000,
        "/* a /* nested */ comment */ -- carried \\\n on\n",
    ],
    ids=["blanks", "line breaks", "lines", "comments", "nested"],
)
def test_any_blanks_and_comments_may_stand_before_a_statement(
    spark: "SparkSession", lake: grebe.Lake, path: Path, start: str
) -> None:
    assert rows(spark, start + "SELECT 1 AS index") == [{"index": 1}]
    spark.sql(start + f"CREATE INDEX by_a ON parquet.`{path}` USING lookup (a)")
    assert [row["name"] for row in rows(spark, start + f"SHOW INDEXES ON parquet.`{path}`")] == ["by_a"]


@pytest.mark.core
def test_signs_that_we_do_not_know_are_for_spark_to_read(spark: "SparkSession", lake: grebe.Lake) -> None:
    spark.sql("EXPLAIN SELECT * FROM VALUES (1) AS t(a) WHERE a = ? -- no index a on t", args=[1]).collect()
    spark.sql("CREATE OR REPLACE TEMP VIEW signs AS SELECT '#' AS a, 1 AS `@` -- index a on b")
    assert rows(spark, "SELECT * FROM signs -- ? index a on t") == [{"a": "#", "@": 1}]


@pytest.mark.core
def test_what_cannot_be_looked_into_is_left_to_spark(
    spark: "SparkSession", lake: grebe.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.errors import ParseException

    def fail(text: str) -> None:
        raise RuntimeError(text)

    spark.sql("CREATE OR REPLACE TEMP VIEW index AS SELECT 1 AS a")
    monkeypatch.setattr("grebe.session.statements.parse_statement", fail)
    try:
        assert [row["col_name"] for row in rows(spark, "DESCRIBE index")] == ["a"]
        spark.sql("EXPLAIN SELECT 1 AS index").collect()
        spark.sql("CREATE OR REPLACE TEMP VIEW index AS SELECT 2 AS index")
        with pytest.raises(ParseException):
            spark.sql("SHOW INDEXES")
    finally:
        spark.sql("DROP VIEW index")


def test_what_is_said_of_indexes_of_a_database_is_the_database_s(spark: "SparkSession", lake: grebe.Lake) -> None:
    catalog = "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"
    with configured(spark, {"spark.sql.catalog.somewhere": catalog}):
        for statement in (
            "CREATE INDEX n ON somewhere.a.t (id)",
            "CREATE INDEX n ON somewhere.a.t USING btree (id)",
            "DROP INDEX n ON somewhere.a.t",
        ):
            with pytest.raises(Exception, match=r"(?i)url|driver|jdbc") as told:
                spark.sql(statement)
            assert "INVALID_" not in str(told.value)


@pytest.mark.core
@pytest.mark.parametrize(
    ("statement", "code", "place"),
    [
        ("CREATE INDEX n ON {0} USING\n covring (a)", "INVALID_INDEX_KIND", "line 2 pos 1"),
        ("CREATE INDEX n ON {0} USING covering (nothing)", "INVALID_INDEX_UNKNOWN_COLUMN", ""),
        ("CREATE INDEX n ON {0} USING covering a", "INVALID_STATEMENT_SYNTAX", "line 1 pos"),
        ("DESCRIBE INDEX n ON {0}", "INDEX_NOT_FOUND", ""),
        ("DROP INDEX n ON {0}", "TABLE_NOT_FOUND_NO_INDEXES", ""),
        ("SHOW INDEXES ON `/a/path`", "INVALID_STATEMENT_TABLE", ""),
        ("SHOW INDEXES ON no.such_table", "TABLE_NOT_FOUND_NOT_READABLE", ""),
        ("EXPLAIN INDEXES SELECT * FROM no_such_table", "TABLE_OR_VIEW_NOT_FOUND", ""),
        ("EXPLAIN INDEXES SELEC", "PARSE_SYNTAX_ERROR", ""),
    ],
)
def test_errors_are_analysis_exceptions_with_our_code(
    spark: "SparkSession", lake: grebe.Lake, path: Path, statement: str, code: str, place: str
) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException) as told:
        spark.sql(statement.format(f"parquet.`{path}`"))
    condition = told.value.getCondition() if spark.version >= "4" else told.value.getErrorClass()
    assert condition == code
    assert f"[{code}]" in str(told.value)
    assert place in str(told.value)


def test_an_index_that_is_there_is_not_made_twice(spark: "SparkSession", lake: grebe.Lake, path: Path) -> None:
    statement = f"CREATE INDEX by_a ON parquet.`{path}` USING lookup (a)"
    spark.sql(statement)
    with pytest.raises(Exception, match="INDEX_EXISTS"):
        spark.sql(statement)


@pytest.mark.core
def test_a_statement_leaves_the_switch_and_later_sessions_have_it_too(
    spark: "SparkSession", lake: grebe.Lake, path: Path
) -> None:
    lake.enabled = False
    try:
        later = spark.newSession()
        later.sql(f"CREATE INDEX by_a ON parquet.`{path}` USING lookup (a)")
        assert [row["name"] for row in rows(later, f"SHOW INDEXES ON parquet.`{path}`")] == ["by_a"]
        assert [row["name"] for row in rows(spark, f"SHOW INDEXES ON parquet.`{path}`")] == ["by_a"]
        assert lake.enabled is False
    finally:
        lake.enabled = True


def test_text_files_are_read_as_when_the_first_index_was_made(
    spark: "SparkSession", lake: grebe.Lake, tmp_path: Path
) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.csv").write_text("id;name\n1;a\n2;b\n", encoding="utf-8")
    options = {"header": "true", "sep": ";", "inferSchema": "true"}
    lake.table(str(tmp_path / "t"), "csv", options).create(grebe.Lookup("by_id", on="id"))
    (tmp_path / "t" / "b.csv").write_text("id;name\n3;c\n", encoding="utf-8")
    assert [one["rows"] for one in rows(spark, f"REFRESH INDEXES ON csv.`{tmp_path / 't'}`")] == [3]


def test_tables_that_are_gone_are_not_shown(spark: "SparkSession", lake: grebe.Lake, path: Path) -> None:
    spark.sql(f"CREATE INDEX by_a ON parquet.`{path}` USING lookup (a)")
    assert path.as_uri() in {row["table"] for row in rows(spark, "SHOW INDEXES")}
    shutil.rmtree(path)
    assert path.as_uri() not in {row["table"] for row in rows(spark, "SHOW INDEXES")}
    shutil.rmtree(path.parent / "_grebe")
    assert path.as_uri() not in {row["table"] for row in rows(spark, "SHOW INDEXES")}


def test_without_grebe_spark_does_not_know_them(spark: "SparkSession", path: Path) -> None:
    from pyspark.errors import ParseException

    grebe.attach(spark).detach()
    with pytest.raises(ParseException):
        spark.sql("SHOW INDEXES")
