"""An index that can no longer be refreshed, since a column of it was dropped, is in nobody's way and is told of everywhere."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import grebe
from grebe.cli.main import main
from grebe.clock import SYSTEM
from grebe.log.commit import Log
from grebe.log.entry import IndexChanged
from grebe.store.opening import open_store
from tests.lakes.formats import HERE
from tests.spark.served import Served

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("lakes delta"),
    pytest.mark.skipif("delta" not in HERE, reason="Delta Lake has no runtime for this Spark"),
]

MAPPED = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"


class Made:
    """A table of (id, a, b), indexes of which some need b, and then b is dropped and rows come."""

    def __init__(self, served: Served, folder: Path, format: str = "delta") -> None:
        self.spark, self.lake = served.spark, served.lake
        name = f"dead{SYSTEM.new_id()[:8]}"
        self.sql = f"delta.`{folder / name}`" if format == "delta" else f"ice.db.{name}"
        self.given = str(folder / name) if format == "delta" else self.sql
        self.run(
            f"CREATE TABLE {{0}} (id BIGINT, a INT, b STRING) USING {format} {MAPPED if format == 'delta' else ''}"
        )
        self.run("INSERT INTO {0} SELECT id, CAST(id % 7 AS INT), concat('x', id) FROM range(0, 50, 1, 1)")
        self.table = self.lake.table(self.given)
        self.table.create(
            grebe.Covering("alive", on="id", include=["a"]),
            grebe.Lookup("gone", on="b"),
            grebe.Covering("half", on="id", include=["a", "b"]),
            grebe.View("seen", f"SELECT b, count(*) AS n FROM {self.sql} GROUP BY b"),
            grebe.Skipping("skips", grebe.MinMax("id")),
        )

    def run(self, sql: str) -> Any:
        return self.spark.sql(sql.format(self.sql))

    def drop_column(self) -> None:
        self.run("ALTER TABLE {0} DROP COLUMN b")
        self.run("INSERT INTO {0} SELECT id, CAST(id % 7 AS INT) FROM range(50, 80, 1, 1)")


DEAD = ["gone", "half", "seen"]


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_a_dropped_column_stops_only_the_indexes_that_need_it(served: Served, folder: Path, format: str) -> None:
    made = Made(served, folder, format)
    made.drop_column()
    entries = len(made.table.history())
    infos = {info.name: info for info in made.table.refresh()}
    assert sorted(name for name, info in infos.items() if info.problem) == DEAD
    assert "b" in infos["gone"].problem
    assert {name: infos[name].files_stale for name in ("alive", "skips")} == {"alive": 0, "skips": 0}
    # What is alive is refreshed, and what is not is marked, in one commit.
    (commit,) = [one for one in made.table.history()[entries:] if one.action == "refresh commit"]
    assert sum("cannot be refreshed" in change for change in commit.changes) == len(DEAD)
    assert [info.name for info in made.table.indexes() if info.problem] == DEAD
    assert served.same_rows(f"SELECT id, a FROM {made.sql} WHERE id = 60").used

    why = {one.index: one for one in made.lake.why_not(made.run("SELECT id, a FROM {0} WHERE id = 60"))}
    assert {name: why[name].code for name in DEAD} == dict.fromkeys(DEAD, "NOT_REFRESHABLE")
    assert "gone can no longer be refreshed" in str(made.lake.explain(made.run("SELECT id FROM {0} WHERE id = 60")))
    without_spark = grebe.open(made.table.uri)
    assert sorted(info.name for info in without_spark.indexes() if info.problem) == DEAD
    assert any(one.code == "NOT_REFRESHABLE" for one in without_spark.explain("id = 60").reasons)

    report = made.table.verify(deep=True)
    assert sorted(one.index for one in report.findings) == DEAD
    made.table.repair()  # leaves them as they are
    with pytest.raises(grebe.InvalidIndex, match="gone"):
        made.table.refresh("gone")
    # The next nights go on as well.
    made.run("INSERT INTO {0} SELECT id, CAST(id % 7 AS INT) FROM range(80, 90, 1, 1)")
    made.table.refresh()
    assert (made.table.index("alive").files_stale, bool(made.table.index("gone").problem)) == (0, True)


def test_a_column_that_comes_back_brings_its_indexes_back(served: Served, folder: Path) -> None:
    made = Made(served, folder)
    made.drop_column()
    made.table.refresh()
    made.run("ALTER TABLE {0} ADD COLUMN b STRING")
    made.table.refresh()
    assert [info.name for info in made.table.indexes() if info.problem] == ["seen"]  # defined by the column's id
    assert served.same_rows(f"SELECT count(*) FROM {made.sql} WHERE b = 'x3'").rows
    made.table.create(grebe.View("seen", f"SELECT b, count(*) AS n FROM {made.sql} GROUP BY b"), replace=True)
    assert made.table.index("seen").problem == ""


def test_a_table_that_is_dropped_and_created_anew_is_refreshed(served: Served, folder: Path) -> None:
    name = f"anew{SYSTEM.new_id()[:8]}"
    fill = "INSERT INTO {0} SELECT id, CAST(id % 9 AS {1}), 'x' FROM range(0, 3000, 1, 1)"
    served.spark.sql(f"CREATE TABLE {name} (id BIGINT, a INT, b STRING) USING delta")
    served.spark.sql(fill.format(name, "INT"))
    table = served.lake.table(name)
    table.create(grebe.Layout("laid", queries=["id < 900", "a = 3"]), grebe.Covering("c", on="id", include=["b"]))
    # Other spellings are the same columns to Spark; other types are not.
    for columns, kind in (("ID BIGINT, A INT, B STRING", "INT"), ("id BIGINT, a STRING, b STRING", "STRING")):
        served.spark.sql(f"DROP TABLE {name}")
        served.spark.sql(f"CREATE TABLE {name} ({columns}) USING delta")
        for _ in range(2):
            served.spark.sql(fill.format(name, kind))
            assert [(info.files_stale, info.problem) for info in table.refresh()] == [(0, ""), (0, "")]
        assert table.verify(deep=True).ok
        assert served.same_rows(f"SELECT id, b FROM {name} WHERE id = 1").used
    served.spark.sql(f"DROP TABLE {name}")


def test_a_layout_whose_tree_does_not_fit_its_table_is_laid_out_anew(served: Served, folder: Path) -> None:
    path = str(folder / f"tree{SYSTEM.new_id()[:8]}")
    served.spark.sql("SELECT id, id % 9 AS a FROM range(0, 3000, 1, 1)").write.format("delta").save(path)
    table = served.lake.table(path)
    table.create(
        grebe.Layout("one", queries=["id < 900"], include=[]), grebe.Layout("two", queries=["a = 3"], include=[])
    )
    other = table.index("two").properties["tree"]
    log = Log(open_store(f"{folder}/_grebe/{Path(path).name}")).open()
    log.commit("forged", lambda state: [IndexChanged("one", 1, properties={"tree": other})])
    served.spark.sql("SELECT id, id % 9 AS a FROM range(3000, 4000, 1, 1)").write.format("delta").mode("append").save(
        path
    )
    assert [(info.files_stale, info.problem) for info in table.refresh()] == [(0, ""), (0, "")]
    assert table.verify(deep=True).ok


def test_auto_and_watch_go_on_beside_a_dead_index(served: Served, folder: Path) -> None:
    made = Made(served, folder)
    made.table.create(grebe.Lookup("auto_gone", on="b"), grebe.Layout("laid", queries=["a > 3"], include=["b"]))
    made.drop_column()
    report = made.table.auto(dry_run=False)
    left = {step.index for step in report.steps if step.done == "left"}
    assert {"gone", "half"} <= left
    assert made.table.index("alive").files_stale == 0
    # One of its own that is dead it drops.
    assert any(step.verb == "drop" and step.index == "auto_gone" for step in made.table.auto(dry_run=True).steps)

    watched = CliRunner().invoke(main, ["watch", made.given, "--times", "2", "--every", "1s", "--json"])
    rounds = [json.loads(line) for line in watched.stdout.splitlines()]
    assert (watched.exit_code, [one["error"] for one in rounds]) == (1, [None, None])
    assert {one["name"] for one in rounds[1]["indexes"] if one["problem"]} >= {"gone", "half"}
    told = CliRunner().invoke(main, ["refresh", made.given])
    assert told.exit_code == 1
    assert "can no longer be refreshed" in told.stdout
    assert "column b is not there" in told.stdout
