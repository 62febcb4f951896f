"""What Iceberg tables can do beyond appending: schemas and partitions evolve, branches and tags, deletes by value, commands."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grebe
from grebe.clock import SYSTEM
from grebe.errors import TableNotFound, Unsupported
from tests.lakes.equality_deletes import delete_by_value
from tests.lakes.formats import HERE
from tests.spark.served import Served

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("lakes iceberg"),
    pytest.mark.skipif("iceberg" not in HERE, reason="Iceberg has no runtime for this Spark"),
]


class Made:
    """A table of the catalog, with rows 0 to 199 of (id, part, name) in four files."""

    def __init__(self, served: Served, properties: str = "", partitioned: str = "") -> None:
        self.served = served
        self.name = f"ice.db.e{SYSTEM.new_id()[:8]}"
        by = f"PARTITIONED BY ({partitioned})" if partitioned else ""
        self.run(f"CREATE TABLE {self.name} (id BIGINT, part INT, name STRING) USING iceberg {by} {properties}")
        self.insert(0, 200, files=4)

    def run(self, sql: str) -> Any:
        return self.served.spark.sql(sql.format(self.name))

    def insert(self, start: int, stop: int, files: int = 1) -> None:
        self.run(
            f"INSERT INTO {self.name} SELECT id, CAST(id % 3 AS INT), concat('n', id) "
            f"FROM range({start}, {stop}, 1, {files})"
        )

    def index(self, *kinds: Any) -> "grebe.session.lake_table.LakeTable":
        table = self.served.lake.table(self.name)
        table.create(*(kinds or (grebe.Covering("c", on="id", include=["part", "name"]), grebe.Lookup("l", on="id"))))
        return table

    def same(self, sql: str) -> Any:
        return self.served.same_rows(sql.format(self.name))

    @property
    def path(self) -> str:
        return f"{self.served.spark.conf.get('spark.sql.catalog.ice.warehouse')}/db/{self.name.rpartition('.')[2]}"


GROUP = "SELECT id, count(*), max(name) FROM {0} GROUP BY id"
LARGE = 2**40
Rows = dict[int, tuple[int, int, str]]
"""By their id."""
POINT = "SELECT * FROM {0} WHERE id = 77"


def test_a_renamed_column_is_found_by_its_id(served: Served) -> None:
    made = Made(served)
    table = made.index()
    made.run("ALTER TABLE {0} RENAME COLUMN id TO key")
    made.insert(200, 250)
    query = "SELECT key, count(*), max(name) FROM {0} GROUP BY key"
    assert made.same(query).used == []
    assert grebe.open(made.path).get("key", 77).to_pylist() == [{"key": 77, "part": 2, "name": "n77"}]
    with pytest.raises(grebe.InvalidIndex, match="id"):
        table.refresh()
    table.delete("c")
    table.delete("l")
    table.create(grebe.Covering("of_key", on="key", include=["name"]), grebe.Lookup("l_key", on="key"))
    assert made.same(query).used == ["of_key"]
    assert grebe.open(made.path).files("key = 77").index == "l_key"
    assert grebe.open(made.path).get("key", 77).num_rows == 1


@pytest.mark.parametrize(
    ("old", "value", "new"),
    [
        ("DECIMAL(5,2)", "CAST(id + 0.25 AS DECIMAL(5,2))", "DECIMAL(9,4)"),
        ("INT", "CAST(id AS INT)", "BIGINT"),
        ("STRING", "concat('s', id)", "INT"),
        ("INT", "CAST(id AS INT)", "DECIMAL(9,2)"),
    ],
)
def test_a_column_that_took_the_old_name_of_a_renamed_one_is_not_taken_for_it(
    served: Served, old: str, value: str, new: str
) -> None:
    name = f"ice.db.r{SYSTEM.new_id()[:8]}"
    for sql in (
        f"CREATE TABLE {name} (id BIGINT, x {old}) USING iceberg",
        f"INSERT INTO {name} SELECT id, {value} FROM range(6)",
        f"ALTER TABLE {name} RENAME COLUMN x TO y",
        f"ALTER TABLE {name} ADD COLUMN x {new}",
        f"INSERT INTO {name} SELECT id + 10, {value}, CAST(id AS {new}) FROM range(6)",
    ):
        served.spark.sql(sql)
    table = served.lake.table(name)
    table.create(
        grebe.Covering("c", on="id", include=["x", "y"]),
        grebe.Covering("cy", on="y", include=["id", "x"]),
        grebe.Lookup("l", on="y", include=["x"]),
    )
    assert served.same_rows(f"SELECT id, x, y FROM {name} WHERE id = 3").used == ["c"]
    assert served.same_rows(f"SELECT id, x, y FROM {name} WHERE y IS NOT NULL ORDER BY id").used
    third = served.spark.sql(f"SELECT y FROM {name} WHERE id = 3").collect()[0].y
    path = f"{served.spark.conf.get('spark.sql.catalog.ice.warehouse')}/db/{name.rpartition('.')[2]}"
    assert sorted(grebe.open(path).get("y", third)["id"].to_pylist()) == [3, 13]
    assert table.verify(deep=True).ok


def test_a_file_without_its_partition_column_is_read_by_iceberg_alone(served: Served) -> None:
    """Its value is in the manifest, and in no file."""
    made = Made(served, partitioned="name")
    made.run("DELETE FROM {0} WHERE id >= 3")
    file = Path(made.path) / "data" / "alone.parquet"
    ids = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})
    pq.write_table(pa.table({"id": range(500, 505)}, schema=pa.schema([ids])), file)
    jvm: Any = served.spark._jvm
    known = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(served.spark._jsparkSession, made.name)
    appended = jvm.org.apache.iceberg.DataFiles.builder(known.spec()).withPath(str(file)).withRecordCount(5)
    appended = appended.withFileSizeInBytes(file.stat().st_size).withPartitionPath("name=alone").withFormat("parquet")
    known.newAppend().appendFile(appended.build()).commit()
    made.run("REFRESH TABLE {0}")
    table = made.index(grebe.Covering("c", on="id", include=["part"]), grebe.Lookup("l", on="id"))
    for kind in (grebe.Covering("n", on="name", include=["id"]), grebe.Lookup("i", on="id", include=["name"])):
        with pytest.raises(Unsupported, match=r"column name .* in the table's metadata") as refused:
            table.create(kind)
        assert refused.value.code == "UNSUPPORTED_FOREIGN_COLUMN"
    assert made.same("SELECT id, part FROM {0} WHERE id = 503").used == ["c"]
    assert made.same("SELECT id, name FROM {0} WHERE id = 503").rows
    opened = grebe.open(made.path)
    assert opened.get("id", 503, ["id", "part"]).to_pylist() == [{"id": 503, "part": None}]
    with pytest.raises(Unsupported, match="in the table's metadata"):
        opened.scan("name = 'alone'")


def test_a_column_that_was_dropped_and_made_anew_is_another_one(served: Served) -> None:
    made = Made(served)
    made.index(grebe.Covering("c", on="id", include=["name"]), grebe.Skipping("s", grebe.ValueList("name")))
    made.run("ALTER TABLE {0} DROP COLUMN name")
    made.run("ALTER TABLE {0} ADD COLUMN name STRING")
    assert made.same("SELECT id, max(name) FROM {0} GROUP BY id").used == []
    assert made.same("SELECT count(*) FROM {0} WHERE name = 'n7'").used == []
    assert made.same("SELECT id, count(*) FROM {0} GROUP BY id").used == ["c"]
    assert grebe.open(made.path).count("name IS NOT NULL") == 0


def test_a_wider_type_is_read_anew(served: Served) -> None:
    made = Made(served)
    table = made.index(grebe.Covering("c", on="part", include=["id"]))
    made.run("ALTER TABLE {0} ALTER COLUMN part TYPE BIGINT")
    query = "SELECT part, sum(id) FROM {0} GROUP BY part"
    assert made.same(query).used == []
    table.refresh()
    assert made.same(query).used == ["c"]


def test_partitions_that_evolve_are_nothing_to_an_index(served: Served) -> None:
    made = Made(served, partitioned="bucket(2, id)")
    table = made.index()
    made.run("ALTER TABLE {0} ADD PARTITION FIELD part")
    made.insert(200, 250)
    made.same(GROUP)
    table.refresh()
    assert made.same(GROUP).used == ["c"]
    assert made.same(POINT).used
    made.same("SELECT a.id, b.name FROM {0} a JOIN {0} b ON a.id = b.id WHERE a.part = 1 AND b.part < 2")


def test_branches_and_tags_are_versions(served: Served) -> None:
    made = Made(served)
    made.index()
    made.run("ALTER TABLE {0} CREATE TAG before")
    made.run("ALTER TABLE {0} CREATE BRANCH side")
    made.run("INSERT INTO {0}.branch_side VALUES (1000, 1, 'aside')")
    made.run("DELETE FROM {0} WHERE id = 77")
    for at, rows in (("{0}", 0), ("{0} VERSION AS OF 'before'", 1), ("{0}.branch_side", 1)):
        seen = made.same(f"SELECT * FROM {at} WHERE id = 77")
        assert seen.rows.total() == rows
        made.same(f"SELECT id, count(*) FROM {at} GROUP BY id")
    assert grebe.open(made.path, version="before").get("id", 77).num_rows == 1
    assert grebe.open(made.path, version="side").get("id", 1000)["name"].to_pylist() == ["aside"]
    assert grebe.open(made.path).get("id", 77).num_rows == 0
    with pytest.raises(TableNotFound, match="before"):
        grebe.open(made.path, version="nowhere")


def test_rows_deleted_by_value_stay_deleted_in_spark_and_are_refused_without(served: Served) -> None:
    made = Made(served)
    made.run(f"INSERT INTO {{0}} VALUES ({LARGE}, 1, 'large')")
    made.index()
    delete_by_value(served.spark, made.name, "id", LARGE)
    assert not made.same(f"SELECT * FROM {{0}} WHERE id = {LARGE}").rows
    made.same(GROUP)
    made.same("SELECT count(*) FROM {0}")
    table = grebe.open(made.path)
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_EQUALITY_DELETES\].*equality deletes"):
        table.get("id", LARGE)
    assert table.files(f"id = {LARGE}").index == "l"


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_commands_change_what_they_would_change_without_indexes(served: Served, mode: str) -> None:
    modes = ", ".join(f"'write.{verb}.mode' = '{mode}'" for verb in ("delete", "update", "merge"))
    made = Made(served, f"TBLPROPERTIES ('format-version' = '2', {modes})")
    made.index()
    commands: tuple[tuple[str, Callable[[Rows], Rows]], ...] = (
        ("UPDATE {0} SET name = 'new' WHERE id = 77", lambda rows: rows | {77: (*rows[77][:2], "new")}),
        (
            "DELETE FROM {0} WHERE id IN (3, 4, 150)",
            lambda rows: {number: row for number, row in rows.items() if number not in (3, 4, 150)},
        ),
        (
            "MERGE INTO {0} t USING (SELECT id + 190 AS id FROM range(20)) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET name = 'merged' WHEN NOT MATCHED THEN INSERT (id, part, name) VALUES (s.id, 9, 'm')",
            lambda rows: rows | {n: (n, n % 3, "merged") if n in rows else (n, 9, "m") for n in range(190, 210)},
        ),
        (
            "INSERT INTO {0} SELECT id + 1000, part, name FROM {0} WHERE id BETWEEN 70 AND 80",
            lambda rows: rows | {n + 1000: (n + 1000, *rows[n][1:]) for n in range(70, 81)},
        ),
    )
    expected: Rows = {number: (number, number % 3, f"n{number}") for number in range(200)}
    for command, changed in commands:
        made.run(command)
        expected = changed(expected)
        assert sorted(map(tuple, made.run("SELECT * FROM {0}").collect())) == sorted(expected.values()), command
        grouped = sorted(map(tuple, served.frame(GROUP.format(made.name)).collect()))
        assert grouped == sorted((number, 1, name) for number, _, name in expected.values()), command
    made.same(GROUP)


def test_two_scans_with_different_files_left_out_are_not_taken_for_each_other(served: Served) -> None:
    made = Made(served)
    made.index(grebe.Lookup("l", on="id"), grebe.Skipping("s", grebe.MinMax("id"), grebe.ValueList("name")))
    made.same(
        "SELECT a.part, b.part FROM (SELECT part, count(*) c FROM {0} WHERE id = 10 GROUP BY part) a FULL JOIN "
        "(SELECT part, count(*) c FROM {0} WHERE id = 160 GROUP BY part) b ON a.c = b.c"
    )
    made.same(
        "SELECT * FROM (SELECT max(part) FROM {0} WHERE length(name) = 2) CROSS JOIN (SELECT max(id) FROM {0} WHERE name = 'n9')"
    )


def test_a_table_made_anew_under_the_same_name_has_nothing_of_the_old_one(served: Served) -> None:
    made = Made(served)
    made.index()
    made.run("DROP TABLE {0} PURGE")
    made.run("CREATE TABLE {0} (id BIGINT, part INT, name STRING) USING iceberg")
    made.run("INSERT INTO {0} VALUES (77, 0, 'another')")
    assert made.same(POINT).rows.total() == 1
    assert made.same(GROUP).rows.total() == 1
    assert grebe.open(made.path).get("id", 77)["name"].to_pylist() == ["another"]


def test_a_path_that_is_no_table_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "metadata").mkdir()
    with pytest.raises(TableNotFound, match=r"\[TABLE_NOT_FOUND_ICEBERG\].*Iceberg"):
        grebe.open(str(tmp_path), format="iceberg")
    (tmp_path / "metadata" / "v1.metadata.json").write_text('{"format-version": 99}')
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_ICEBERG\].*pyiceberg"):
        grebe.open(str(tmp_path))
