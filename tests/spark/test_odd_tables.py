"""Tables with columns of type CHAR, with defaults or new names, and with partitions that lie elsewhere or were renamed."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import grebe
from testbed.spark import configured
from tests.lakes.formats import HERE
from tests.spark.served import Served, serving, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core]


@pytest.fixture(scope="module")
def served(spark: "SparkSession") -> Iterator[Served]:
    with serving(spark) as made:
        yield made


def test_a_view_groups_and_filters_columns_of_type_char(served: Served, folder: Path) -> None:
    run = served.spark.sql
    run(f"CREATE TABLE padded (c CHAR(5), v VARCHAR(10), n INT) USING parquet LOCATION '{folder / 'padded'}'")
    run("INSERT INTO padded VALUES ('a', 'x', 1), ('a', 'y', 2), ('bcdef', 'x', 3), (NULL, NULL, 4)")
    # Files of another writer have no blanks.
    served.spark.range(1).selectExpr("'a' AS c", "'x' AS v", "CAST(7 AS INT) AS n").write.mode("append").parquet(
        str(folder / "padded")
    )
    run("REFRESH TABLE padded")
    served.lake.table("padded").create(
        grebe.View("by_c", "SELECT c, v, count(*), sum(n) FROM padded GROUP BY c, v"),
        grebe.View("of_a", "SELECT v, n FROM padded WHERE c = 'a'"),
        grebe.Covering("by_n", on="n"),
    )
    served.same("SELECT c, sum(n) FROM padded GROUP BY c", "by_c")
    served.same_rows("SELECT v, count(*) FROM padded WHERE c = 'a' GROUP BY v")
    with served.lake.only("of_a"):
        served.same("SELECT n FROM padded WHERE c = 'a' AND v = 'x'", "of_a")
    run("INSERT INTO padded VALUES ('a', 'x', 9)")
    served.same_rows("SELECT c, sum(n) FROM padded GROUP BY c")
    served.lake.table("padded").refresh()
    served.same("SELECT c, sum(n) FROM padded GROUP BY c", "by_c")


def test_texts_that_only_look_alike_are_not_taken_for_each_other(served: Served, folder: Path) -> None:
    served.spark.sql("SELECT id % 3 AS a, concat('b', id) AS s FROM range(9)").write.parquet(str(folder / "alike"))
    table = f"parquet.`{folder / 'alike'}`"
    served.lake.table(str(folder / "alike")).create(
        grebe.View("null", f"SELECT if(a > 1, 'null', s) AS k, count(*) FROM {table} GROUP BY 1"),
        grebe.View("pair", f"SELECT s FROM {table} WHERE array_contains(array('b1', 'b2'), s)"),
        grebe.View("set", f"SELECT a, s FROM {table} WHERE s IN ({', '.join(repr(f'b{n}') for n in range(12))})"),
    )
    served.same(f"SELECT if(a > 1, 'null', s), count(*) FROM {table} GROUP BY 1", "null")
    served.same_rows(f"SELECT if(a > 1, NULL, s), count(*) FROM {table} GROUP BY 1")
    served.same_rows(f"SELECT s FROM {table} WHERE array_contains(array('b1, b2'), s)")
    served.same_rows(f"SELECT a, s FROM {table} WHERE s IN ({', '.join(repr(f'b{n},') for n in range(12))})")


def test_a_partition_that_lies_elsewhere_is_read_as_it_is(served: Served, folder: Path) -> None:
    run = served.spark.sql
    run(f"CREATE TABLE parted (n INT, p INT) USING parquet PARTITIONED BY (p) LOCATION '{folder / 'parted'}'")
    run("INSERT INTO parted SELECT CAST(id AS INT), CAST(id % 2 AS INT) FROM range(20)")
    table = served.lake.table("parted")
    kinds = (
        grebe.Covering("covering", on="n", include=["p"]),
        grebe.Lookup("lookup", on="n"),
        grebe.Skipping("skipping", grebe.MinMax("n")),
        grebe.Sieve("sieve", on="n"),
        grebe.View("view", "SELECT p, count(n), max(n) FROM parted GROUP BY p"),
    )
    table.create(*kinds)
    elsewhere = folder / "elsewhere"
    served.spark.range(100, 105).selectExpr("CAST(id AS INT) AS n").write.parquet(str(elsewhere))
    run(f"ALTER TABLE parted ADD PARTITION (p = 7) LOCATION '{elsewhere}'")
    run("INSERT INTO parted VALUES (30, 1)")
    for mode in ("incremental", "full"):
        table = served.lake.table("parted")
        refreshed = table.refresh(mode=mode)
        assert {info.files_stale for info in refreshed} == {0}, refreshed
        assert not table.verify(deep=True).findings
        for query in (
            "SELECT n, p FROM parted WHERE n IN (3, 30, 102)",
            "SELECT p, count(n), max(n) FROM parted GROUP BY p",
            "SELECT count(*), count(n), min(n), max(n) FROM parted",
            "SELECT n FROM parted WHERE p = 7",
        ):
            for kind in kinds:
                with served.lake.only(kind.name):
                    served.same_rows(query)
        run("INSERT INTO parted VALUES (31, 0), (106, 7)")


def test_dates_that_spark_refuses_to_read_are_not_answered_from_metadata(served: Served, folder: Path) -> None:
    """Whoever wrote the file did not say by which calendar; asked to, Spark refuses to guess."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    write(folder / "ancient", {"d": [date(1500, 1, 1), date(2020, 1, 1)], "k": [1, 2]})
    name = f"parquet.`{folder / 'ancient'}`"
    with configured(served.spark, {"spark.sql.parquet.datetimeRebaseModeInRead": "EXCEPTION"}):
        served.lake.table(str(folder / "ancient")).create(
            grebe.Skipping("s", grebe.MinMax("d"), grebe.MinMax("k"), grebe.NullCount("d"))
        )
        for query in (
            f"SELECT max(d) FROM {name}",
            f"SELECT count(d) FROM {name}",
            f"SELECT min(d), max(k) FROM {name}",
        ):
            for ask in (served.plain, served.run):
                with pytest.raises((PySparkException, Py4JError), match="READ_ANCIENT_DATETIME"):
                    ask(query)
        served.same(f"SELECT max(k) FROM {name}", "s")
    with configured(served.spark, {"spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED"}):
        served.same_rows(f"SELECT min(d), count(d) FROM {name}")


@pytest.mark.skipif("delta" not in HERE, reason="Delta Lake has no runtime for this Spark")
def test_a_renamed_column_of_a_view_is_a_finding(served: Served, folder: Path) -> None:
    name = f"delta.`{folder / 'renamed'}`"
    run = served.spark.sql
    run(f"CREATE TABLE {name} (id BIGINT, a INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    run(f"INSERT INTO {name} SELECT id, CAST(id % 3 AS INT) FROM range(9)")
    table = served.lake.table(str(folder / "renamed"))
    table.create(grebe.View("view", f"SELECT a, count(*) FROM {name} GROUP BY a"), grebe.Covering("by_id", on="id"))
    run(f"ALTER TABLE {name} RENAME COLUMN a TO b")
    table = served.lake.table(str(folder / "renamed"))
    found = table.verify(deep=True)
    assert {one.index for one in found.findings} == {"view"}
    served.same_rows(f"SELECT b, count(*) FROM {name} GROUP BY b")


@pytest.mark.parametrize("form", ["parquet", "orc", "csv", "json"])
def test_a_file_without_a_column_holds_the_default_of_that_column(served: Served, folder: Path, form: str) -> None:
    run, name = served.spark.sql, f"defaulted_{form}"
    run(f"CREATE TABLE {name} (x INT) USING {form} LOCATION '{folder / name}'")
    run(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ CAST(id AS INT) FROM range(100)")
    run(f"ALTER TABLE {name} ADD COLUMN c INT DEFAULT 5")
    run(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ CAST(id AS INT), IF(id < 150, NULL, 7) FROM range(100, 200)")
    kinds = (
        grebe.Skipping("skipping", grebe.MinMax("c"), grebe.NullCount("c"), grebe.ValueList("c")),
        grebe.Sieve("sieve", on="c"),
        grebe.Covering("covering", on="x", include=["c"]),
        grebe.View("view", f"SELECT c, count(*), max(x) FROM {name} GROUP BY c"),
        grebe.Lookup("other", on="x"),
        grebe.Lookup("lookup", on="c"),
    )
    served.lake.table(name).create(*kinds)
    for query in (
        f"SELECT count(*) FROM {name} WHERE c = 5",
        f"SELECT count(*) FROM {name} WHERE c IS NULL",
        f"SELECT count(c), min(c), max(c) FROM {name}",
        f"SELECT c, count(*), max(x) FROM {name} GROUP BY c",
        f"SELECT sum(c) FROM {name} WHERE x = 10",
    ):
        for kind in kinds:
            with served.lake.only(kind.name):
                served.same_rows(query)
    assert not served.lake.table(name).verify(deep=True).findings
    with served.lake.only("other"):
        served.same(f"SELECT x, c FROM {name} WHERE x = 10", "other")


def test_a_reading_without_the_default_of_a_column_is_another_reading(served: Served, folder: Path) -> None:
    run = served.spark.sql
    run(f"CREATE TABLE undefaulted (x INT) USING parquet LOCATION '{folder / 'undefaulted'}'")
    run("INSERT INTO undefaulted SELECT CAST(id AS INT) FROM range(100)")
    run("ALTER TABLE undefaulted ADD COLUMN c INT DEFAULT 5")
    served.lake.table("undefaulted").create(grebe.Covering("covering", on="x", include=["c"]))
    served.same("SELECT x, c FROM undefaulted WHERE x = 10", "covering")

    def by_path(session: "SparkSession") -> "DataFrame":
        return session.read.schema("x INT, c INT").parquet(str(folder / "undefaulted")).where("x = 10")

    served.same(by_path)
    assert served.reasons(by_path) == {"covering": "COL_SCHEMA_MISMATCH"}
    served.same(lambda session: by_path(session).select("x"), "covering")


@pytest.mark.parametrize(
    ("kind", "old", "new"), [("INT", "0", "9"), ("STRING", "a b", "c/d"), ("DATE", "2024-01-01", "2025-01-01")]
)
def test_a_partition_that_the_catalog_renamed_has_its_new_value(
    served: Served, folder: Path, kind: str, old: str, new: str
) -> None:
    run, name = served.spark.sql, f"renamed_{kind.lower()}"
    run(f"CREATE TABLE {name} (n INT, p {kind}) USING parquet PARTITIONED BY (p) LOCATION '{folder / name}'")
    run(f"INSERT INTO {name} SELECT CAST(id AS INT), CAST('{old}' AS {kind}) FROM range(20)")
    run(f"INSERT INTO {name} SELECT CAST(id AS INT), NULL FROM range(20, 40)")
    kinds = (
        grebe.Covering("covering", on="n", include=["p"]),
        grebe.Lookup("lookup", on="p"),
        grebe.Skipping("skipping", grebe.MinMax("p"), grebe.MinMax("n")),
        grebe.View("view", f"SELECT p, count(n), max(n) FROM {name} GROUP BY p"),
    )
    served.lake.table(name).create(*kinds)
    queries = (
        f"SELECT n, p FROM {name} WHERE n IN (3, 30)",
        f"SELECT p, count(n), max(n) FROM {name} GROUP BY p",
        f"SELECT max(p), count(p), max(n) FROM {name}",
        f"SELECT n FROM {name} WHERE p = '{new}'",
        f"SELECT n FROM {name} WHERE p = '{old}'",
    )
    with served.lake.only("covering"):
        served.same(queries[0], "covering")
    run(f"ALTER TABLE {name} PARTITION (p = '{old}') RENAME TO PARTITION (p = '{new}')")
    assert "=" + old.replace("/", "%2F") in " ".join(path.name for path in (folder / name).iterdir())
    for mode in ("none", "incremental", "full"):
        if mode != "none":
            served.lake.table(name).refresh(mode=mode)
            assert not served.lake.table(name).verify(deep=True).findings
        for query in queries:
            for index in kinds:
                with served.lake.only(index.name):
                    served.same_rows(query)
    with served.lake.only("covering"):
        served.same(f"SELECT n, p FROM {name} WHERE n = 30", "covering")


def test_a_folder_that_two_partitions_share_is_read_twice(served: Served, folder: Path) -> None:
    run = served.spark.sql
    run(f"CREATE TABLE shared (n INT, p INT) USING parquet PARTITIONED BY (p) LOCATION '{folder / 'shared'}'")
    run("INSERT INTO shared SELECT CAST(id AS INT), CAST(id % 2 AS INT) FROM range(40)")
    kinds = (
        grebe.Covering("covering", on="n", include=["p"]),
        grebe.Lookup("lookup", on="n"),
        grebe.Skipping("skipping", grebe.MinMax("p"), grebe.MinMax("n")),
    )
    served.lake.table("shared").create(*kinds)
    for partition, place in ((1, 0), (0, 1), (0, 0)):
        run(f"ALTER TABLE shared PARTITION (p = {partition}) SET LOCATION '{folder / 'shared' / f'p={place}'}'")
        for refreshed in (False, True):
            if refreshed:
                served.lake.table("shared").refresh()
            for query in (
                "SELECT n, p FROM shared WHERE n IN (2, 3)",
                "SELECT p, count(n), max(n) FROM shared GROUP BY p",
                "SELECT n FROM shared WHERE p = 1 AND n < 5",
                "SELECT count(*), max(n), min(p) FROM shared",
            ):
                for index in kinds:
                    with served.lake.only(index.name):
                        served.same_rows(query)


def test_a_snapshot_keeps_the_rows_of_a_renamed_partition(spark: "SparkSession", folder: Path) -> None:
    with serving(
        spark, grebe.Config(consistency="snapshot", hybrid_max_appended=1.0, hybrid_max_deleted=1.0)
    ) as served:
        run = served.spark.sql
        run(f"CREATE TABLE snapped (n INT, p INT) USING parquet PARTITIONED BY (p) LOCATION '{folder / 'snapped'}'")
        run("INSERT INTO snapped SELECT CAST(id AS INT), CAST(id % 2 AS INT) FROM range(40)")
        served.lake.table("snapped").create(grebe.Covering("covering", on="n", include=["p"]))
        served.same("SELECT n, p FROM snapped WHERE n = 2", "covering")
        run("ALTER TABLE snapped PARTITION (p = 0) RENAME TO PARTITION (p = 9)")
        served.same_rows("SELECT n, p FROM snapped WHERE n IN (2, 3)")
        served.same_rows("SELECT p, count(n) FROM snapped GROUP BY p")


def test_a_table_of_a_view_is_another_one_once_a_partition_was_renamed(served: Served, folder: Path) -> None:
    run, bridge = served.spark.sql, served.lake._spark._shim.bridge
    run(f"CREATE TABLE dims (id INT, p INT) USING parquet PARTITIONED BY (p) LOCATION '{folder / 'dims'}'")
    run("INSERT INTO dims VALUES (0, 0), (1, 0), (2, 1), (3, 1)")
    by_path = bridge.digest(served.spark.read.parquet(str(folder / "dims"))._jdf)
    assert bridge.digest(served.spark.table("dims")._jdf) == by_path
    run("ALTER TABLE dims PARTITION (p = 0) RENAME TO PARTITION (p = 9)")
    assert bridge.digest(served.spark.table("dims")._jdf) != by_path
