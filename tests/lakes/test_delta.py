"""What Delta tables can do beyond appending: columns mapped to other names, partitions, vectors, commands, commits of others."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import grebe
from grebe.clock import SYSTEM
from grebe.errors import TableNotFound, Unsupported
from tests.lakes.formats import HERE
from tests.spark.served import Served

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("lakes delta"),
    pytest.mark.skipif("delta" not in HERE, reason="Delta Lake has no runtime for this Spark"),
]

VECTORS = "'delta.enableDeletionVectors' = 'true'"
MAPPED = f"'delta.columnMapping.mode' = 'name', {VECTORS}"
GROUP = "SELECT id, count(*), max(name) FROM {0} GROUP BY id"


class Made:
    """A table with rows 0 to 199 of (id, part, nested, name), partitioned by part_a, which is NULL, empty or odd."""

    def __init__(self, served: Served, folder: Path, properties: str = VECTORS) -> None:
        self.served = served
        self.path = str(folder / f"d {SYSTEM.new_id()[:8]}")
        self.run(
            "CREATE TABLE {0} (id BIGINT, part_a STRING, nested STRUCT<x: INT, y: STRING>, name STRING) USING delta "
            f"PARTITIONED BY (part_a) TBLPROPERTIES ({properties})"
        )
        self.insert(0, 200)

    def run(self, sql: str) -> Any:
        return self.served.spark.sql(sql.format(f"delta.`{self.path}`"))

    def insert(self, start: int, stop: int, first: str = "id") -> None:
        values = "CASE WHEN id % 4 = 0 THEN NULL ELSE concat('p %', id % 4) END"
        self.run(
            f"INSERT INTO {{0}} SELECT id, {values}, named_struct('x', CAST(id AS INT), 'y', 'z'), concat('n', id) "
            f"FROM range({start}, {stop}, 1, 2)"
        )

    def index(self) -> Any:
        table = self.served.lake.table(self.path)
        table.create(
            grebe.Covering("c", on="id", include=["part_a", "name", "nested.x"]),
            grebe.Lookup("l", on="id", include=["name"]),
            grebe.Skipping("s", grebe.MinMax("id"), grebe.ValueList("part_a")),
        )
        return table

    def same(self, sql: str) -> Any:
        return self.served.same_rows(sql.format(f"delta.`{self.path}`"))


@pytest.mark.parametrize("properties", [VECTORS, MAPPED], ids=["plain", "mapped"])
def test_columns_partitions_and_nested_fields_are_found(served: Served, folder: Path, properties: str) -> None:
    made = Made(served, folder, properties)
    made.index()
    assert made.same(GROUP).used == ["c"]
    made.same("SELECT id, part_a, name FROM {0} WHERE id IN (5, 8, 77)")
    made.same("SELECT id, nested.x FROM {0} WHERE id = 77")
    made.same("SELECT * FROM {0} WHERE part_a IS NULL AND id > 150")
    made.same("SELECT part_a, count(*) FROM {0} WHERE part_a = 'p %1' GROUP BY 1")
    made.run("DELETE FROM {0} WHERE id IN (77, 78)")
    assert not made.same("SELECT id, name FROM {0} WHERE id = 77").rows
    made.same(GROUP)
    found = grebe.open(made.path).scan("id IN (5, 8, 77)", columns=["id", "part_a", "name"]).to_pylist()
    assert sorted((row["id"], row["part_a"], row["name"]) for row in found) == [(5, "p %1", "n5"), (8, None, "n8")]
    assert grebe.open(made.path).files("id = 5").index == "l"


def test_a_mapped_column_that_is_renamed_or_dropped_is_not_served_by_an_old_index(served: Served, folder: Path) -> None:
    made = Made(served, folder, MAPPED)
    table = made.index()
    made.run("ALTER TABLE {0} RENAME COLUMN name TO title")
    made.run("ALTER TABLE {0} ADD COLUMN name STRING")
    assert made.same("SELECT id, max(name) FROM {0} GROUP BY id").used == []
    assert made.same("SELECT id, max(title) FROM {0} GROUP BY id").used == []
    assert grebe.open(made.path).get("id", 77, columns=["name", "title"]).to_pylist() == [
        {"name": None, "title": "n77"}
    ]
    table.refresh()
    assert made.same("SELECT id, max(name) FROM {0} GROUP BY id").used == ["c"]
    made.run("ALTER TABLE {0} DROP COLUMN name")
    assert {info.name for info in table.refresh() if "name" in info.problem} == {"c", "l"}
    made.same("SELECT id, count(*) FROM {0} GROUP BY id")


Rows = dict[int, tuple[Any, ...]]
"""By their id."""


def merged(rows: Rows) -> Rows:
    into = {number: (number, None, None, "m") for number in range(190, 210)}
    return rows | {number: (*rows[number][:3], "merged") if number in rows else row for number, row in into.items()}


def test_commands_change_what_they_would_change_without_indexes(served: Served, folder: Path) -> None:
    made = Made(served, folder)
    table = made.index()
    first: Rows = {n: (n, f"p %{n % 4}" if n % 4 else None, (n, "z"), f"n{n}") for n in range(200)}
    updated = first | {77: (*first[77][:3], "new")}
    commands: tuple[tuple[str, Callable[[Rows], Rows]], ...] = (
        ("UPDATE {0} SET name = 'new' WHERE id = 77", lambda _: updated),
        (
            "DELETE FROM {0} WHERE id IN (3, 4, 150)",
            lambda rows: {number: row for number, row in rows.items() if number not in (3, 4, 150)},
        ),
        (
            "MERGE INTO {0} t USING (SELECT id + 190 AS id FROM range(20)) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET name = 'merged' WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'm')",
            merged,
        ),
        ("OPTIMIZE {0}", lambda rows: rows),
        (
            "INSERT INTO {0} SELECT id + 1000, part_a, nested, name FROM {0} WHERE id BETWEEN 70 AND 80",
            lambda rows: rows | {n + 1000: (n + 1000, *rows[n][1:]) for n in range(70, 81)},
        ),
        ("RESTORE {0} TO VERSION AS OF 2", lambda _: updated),
    )
    expected = first
    for command, changed in commands:
        made.run(command)
        expected = changed(expected)
        assert sorted(map(tuple, made.run("SELECT * FROM {0}").collect())) == sorted(expected.values()), command
    made.same(GROUP)
    table.refresh()
    made.same(GROUP)


def test_what_another_writer_commits_is_seen(served: Served, folder: Path, tmp_path: Path) -> None:
    """Of another engine, which adds and rewrites files behind Spark's back."""
    import pyarrow as pa
    from deltalake import DeltaTable, write_deltalake

    path = str(tmp_path / "t")
    for start in range(0, 300, 100):
        ids = pa.array(range(start, start + 100), pa.int64())
        write_deltalake(
            path, pa.table({"id": ids, "name": pa.array([f"n{i}" for i in ids.to_pylist()])}), mode="append"
        )
    table = served.lake.table(path)
    table.create(grebe.Covering("c", on="id", include=["name"]), grebe.Lookup("l", on="id"))
    query = f"SELECT id, max(name) FROM delta.`{path}` GROUP BY id"
    assert served.same_rows(query).used == ["c"]
    DeltaTable(path).delete("id = 7")
    DeltaTable(path).optimize.compact()
    served.same_rows(query)
    assert served.same_rows(f"SELECT * FROM delta.`{path}` WHERE id = 7").rows.total() == 0
    assert grebe.open(path, version=2).get("id", 7).num_rows == 1
    snapshot = grebe.Config(consistency="snapshot")
    assert grebe.open(path, config=snapshot).get("id", 7).num_rows == 1
    table.refresh()
    assert grebe.open(path, config=snapshot).get("id", 7).num_rows == 0
    assert served.same_rows(query).used == ["c"]
    assert served.same_rows(f"SELECT id, max(name) FROM delta.`{path}` VERSION AS OF 2 GROUP BY id").used == ["c"]


def test_a_table_made_anew_at_the_same_path_has_nothing_of_the_old_one(served: Served, folder: Path) -> None:
    import shutil

    made = Made(served, folder)
    made.index()
    shutil.rmtree(made.path)
    served.spark.sql("SELECT 77L AS id, 'p' AS part_a, 'another' AS name").write.format("delta").save(made.path)
    served.spark.catalog.clearCache()
    assert made.same("SELECT id, name FROM {0} WHERE id = 77").rows.total() == 1
    assert made.same("SELECT id, count(*) FROM {0} GROUP BY id").rows.total() == 1
    assert grebe.open(made.path).get("id", 77)["name"].to_pylist() == ["another"]


def test_versions_that_are_not_there_are_named(served: Served, folder: Path) -> None:
    made = Made(served, folder)
    for asked in ({"version": 99}, {"version": "nothing"}, {"timestamp": "1999-01-01"}, {"version": -1}):
        with pytest.raises(TableNotFound, match=r"\[TABLE_NOT_FOUND_VERSION\].*no version"):
            grebe.open(made.path, **asked)
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_TIMESTAMP\].*no time"):
        grebe.open(made.path, timestamp="yesterday")
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_VERSION\].*one of them"):
        grebe.open(made.path, version=0, timestamp="2026-01-01")
    with pytest.raises(TableNotFound, match=r"\[TABLE_NOT_FOUND_DELTA\].*Delta Lake"):
        grebe.open(str(folder), format="delta")


def test_columns_mapped_by_id_are_refused(served: Served, folder: Path) -> None:
    """The files of such a table may have any names."""
    made = Made(served, folder, "'delta.columnMapping.mode' = 'id'")
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_COLUMN_MAPPING\].*by their ids"):
        grebe.open(made.path)
    with pytest.raises(Unsupported, match="by their ids"):
        served.lake.table(made.path)


def test_a_view_answers_for_what_is_not_deleted(served: Served, folder: Path) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    made, other = Made(served, folder), str(folder / "other")
    write_deltalake(other, pa.table({"id": pa.array(range(3), pa.int64())}))
    view = f"SELECT part_a, count(*) AS n, max(name) AS last FROM delta.`{made.path}` GROUP BY part_a"
    table = served.lake.table(made.path)
    table.create(grebe.View("v", view))
    query = "SELECT substr(part_a, 4) AS p, count(*), max(name) FROM {0} WHERE part_a IS NOT NULL GROUP BY 1"
    assert made.same(query).used == ["v"]
    made.run("DELETE FROM {0} WHERE id IN (77, 78, 79)")
    made.insert(300, 340)
    made.same(query)
    made.run("OPTIMIZE {0}")
    table.refresh()
    assert made.same(query).used == ["v"]
    joined = f"SELECT count(*) AS n FROM delta.`{made.path}` a JOIN delta.`{other}` b ON a.id = b.id"
    with pytest.raises(Unsupported, match="is a lake table; create the view on that one") as refused:
        table.create(grebe.View("w", joined))
    assert refused.value.code == "UNSUPPORTED_VIEW_TABLES"
