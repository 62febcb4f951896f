"""Tables of Delta Lake and Iceberg laid out themselves: no row is lost, whoever else writes, and queries read less of them."""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from click.testing import CliRunner
from py4j.protocol import Py4JJavaError

import grebe
from grebe.advisor.organise import in_place
from grebe.advisor.organise.learned import Query as Recorded
from grebe.cli.main import main
from grebe.errors import Conflict, GrebeError, InvalidConfig, InvalidStatement, StoreUnreachable, Unsupported
from grebe.indexes.layout.laid_out import laid_out
from grebe.indexes.where import recalled
from grebe.sources.delta import DeltaSource
from grebe.sources.iceberg import _newest
from grebe.spark import delta_rewrite, iceberg_rewrite, table_rewrite
from grebe.spark.lake_source import LakeSource
from grebe.store.opening import open_store
from tests.lakes.equality_deletes import delete_by_value
from tests.lakes.formats import FORMATS, HERE, SHORT_FIRST, LakeFormat
from tests.spark.served import Served, serving

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core]
RECORDS = grebe.Config(record_workload=True, hybrid_max_appended=1.0, hybrid_max_deleted=1.0)
LAKES = [name for name in SHORT_FIRST if "hudi" not in HERE]
ROWS = 18_000


@pytest.fixture(scope="module")
def served(spark: "SparkSession") -> Iterator[Served]:
    with serving(spark, RECORDS) as made:
        yield made


@pytest.fixture(params=LAKES)
def lake(request: pytest.FixtureRequest, served: Served, tmp_path: Path) -> LakeFormat:
    made = FORMATS[request.param](served.spark, tmp_path)
    made.create(rows(served.spark).repartition(4))
    return made


def rows(spark: "SparkSession", count: int = ROWS, start: int = 0) -> "DataFrame":
    """The columns of `LakeFormat`: k and w are asked for, v is a number of its own."""
    return spark.range(start, start + count).selectExpr(
        "CASE WHEN id % 50 = 0 THEN NULL ELSE pmod(xxhash64(id), 10000) END AS k",
        "CAST(pmod(xxhash64(id, 7), 1000) AS INT) AS w",
        "id AS v",
        "concat(sha2(CAST(id AS STRING), 512), sha1(CAST(-id AS STRING))) AS s",
    )


def conditions(seed: int = 1, count: int = 6) -> list[str]:
    chance = random.Random(seed)
    ends = [(chance.randrange(9_000), chance.randrange(900)) for _ in range(count)]
    return [f"k >= {k} AND k <= {k + 800} AND w >= {w} AND w <= {w + 80}" for k, w in ends]


def ask(served: Served, name: str, path: str, asked: Sequence[str]) -> None:
    """The first in Spark; the others without, which are recorded just so, and quicker."""
    served.run(f"SELECT v FROM {name} WHERE {asked[0]}")
    table = grebe.open(path, config=RECORDS)
    for condition in asked[1:]:
        table.scan(condition, ["v"])


def held(served: Served, what: str) -> Counter[Any]:
    served.lake.enabled = False
    try:
        columns = served.spark.sql(f"SELECT * FROM {what}").toArrow().columns
        return Counter(zip(*(column.to_pylist() for column in columns), strict=True))
    finally:
        served.lake.enabled = True


def files_read(served: Served, lake: LakeFormat, asked: Sequence[str]) -> int:
    """By the format's own skipping, of which Grebe knows nothing."""
    if "iceberg" in lake.path or lake.sql.startswith("ice."):
        from pyiceberg.table import StaticTable

        newest = StaticTable.from_metadata(f"{lake.path}/metadata/{_newest(open_store(lake.path))}")
        return sum(len(list(newest.scan(row_filter=condition).plan_files())) for condition in asked)
    served.lake.enabled = False
    try:
        return sum(len(served.spark.table(lake.sql).where(condition).inputFiles()) for condition in asked)
    finally:
        served.lake.enabled = True


def listing(lake: LakeFormat) -> list[tuple[str, int]]:
    return sorted((str(file), file.stat().st_mtime_ns) for file in Path(lake.path).rglob("*"))


def test_rows_stay_and_queries_read_less(served: Served, lake: LakeFormat) -> None:
    lake.delete("v % 100 = 3")
    asked = conditions()
    ask(served, lake.sql, lake.path, asked)
    table = served.lake.table(lake.given)
    table.create(grebe.Covering("by_k", on="k", include=["v", "w"], buckets=2))
    query = f"SELECT v FROM {lake.sql} WHERE {asked[0]}"
    before, at, read, there = held(served, lake.sql), lake.version(), files_read(served, lake, asked), listing(lake)
    told = table.organise(in_place=True)
    assert (told.done, told.dry_run, told.files, told.version) == ("rewritten", True, 4, "")
    assert told.read_after < 0.7 * told.read_before
    assert "would be written anew (dry run)" in str(told)
    shown = CliRunner().invoke(main, ["organise", lake.given, "--in-place", "--json"])
    assert (shown.exit_code, json.loads(shown.stdout)) == (0, told.to_dict())
    assert listing(lake) == there
    recorded = table.workload().count()
    made = table.organise(in_place=True, dry_run=False)
    assert table.workload().count() == recorded
    assert (made.done, made.dry_run, made.version) == ("rewritten", False, str(lake.version()))
    assert held(served, lake.sql) == before
    assert held(served, lake.as_of(at)) == before
    assert files_read(served, lake, asked) < 0.7 * read
    served.same_rows(query)
    table.refresh()
    served.same(query, "by_k")
    assert table.verify(deep=True).ok
    again = table.organise(in_place=True, dry_run=False)
    assert (again.done, again.version) == ("nothing", ""), again


@pytest.mark.skipif("hudi" not in HERE, reason="no Hudi for this Spark")
def test_hudi_is_refused(served: Served, tmp_path: Path) -> None:
    lake = FORMATS["hudi"](served.spark, tmp_path)
    lake.create(rows(served.spark, 10))
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_IN_PLACE_FORMAT\].*a table of hudi"):
        served.lake.table(lake.path).organise(in_place=True)


def test_yes_is_said_only_to_what_rewrites_the_table() -> None:
    asked = CliRunner().invoke(main, ["organise", "anything", "--yes"])
    assert (asked.exit_code, "--yes is for --in-place" in asked.output) == (2, True)


@pytest.mark.parametrize("lake", ["delta"] if "delta" in HERE else [], indirect=True)
def test_queries_of_several_kinds_by_turns_are_told_by_all_of_them(served: Served, lake: LakeFormat) -> None:
    source = served.lake.table(lake.path).newest
    assert isinstance(source, LakeSource)
    by_turns = [
        f"k BETWEEN {250 * n} AND {250 * n + 90}" if n % 2 else f"w BETWEEN {25 * n} AND {25 * n + 9}"
        for n in range(40)
    ]
    asked = [Recorded(recalled(text, source.reading), frozenset(["v"]), 1.0, 0) for text in by_turns]
    table = in_place._Table(source, asked)
    assert table.before > 0.95
    assert in_place._Plan(table, np.arange(4)).after < 0.85


def interrupted(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], None]) -> None:
    """Something happens after the rows to be rewritten are known, and before they are written."""

    def arranged(*arguments: Any, **named: Any) -> "DataFrame":
        meanwhile()
        return laid_out(*arguments, **named)

    monkeypatch.setattr(in_place, "laid_out", arranged)


def test_whatever_others_do_meanwhile_no_row_is_lost(
    served: Served, lake: LakeFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(served, lake.sql, lake.path, conditions(count=4))
    expected, table = held(served, lake.sql), served.lake.table(lake.given)
    for change in (partial(lake.delete, "v < 100"), lake.compact):
        interrupted(monkeypatch, change)
        with pytest.raises(Conflict, match=r"\[CONFLICT_TABLE_CHANGED\].*Nothing was changed"):
            table.organise(in_place=True, dry_run=False)
        expected = Counter({row: count for row, count in expected.items() if row[2] >= 100})
        assert held(served, lake.sql) == expected
    new = rows(served.spark, 50, ROWS)
    interrupted(monkeypatch, partial(lake.append, new))
    assert table.organise(in_place=True, dry_run=False).done == "rewritten"
    assert held(served, lake.sql) == expected + Counter(tuple(row) for row in new.collect())


@pytest.mark.skipif("iceberg" not in HERE, reason="no Iceberg for this Spark")
def test_rows_deleted_by_value_before_and_meanwhile_stay_deleted(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, first = FORMATS["iceberg"](served.spark, tmp_path), 2**31
    lake.create(rows(served.spark, start=first).repartition(4))
    ask(served, lake.sql, lake.path, conditions(count=4))
    expected = Counter(
        {row: count for row, count in held(served, lake.sql).items() if row[2] not in (first, first + 1)}
    )
    delete_by_value(served.spark, lake.sql, "v", first)
    interrupted(monkeypatch, lambda: delete_by_value(served.spark, lake.sql, "v", first + 1))
    assert served.lake.table(lake.given).organise(in_place=True, dry_run=False).done == "rewritten"
    assert held(served, lake.sql) == expected


def metadata(served: Served, name: str) -> list[Any]:
    """Schema, partitions, properties and protocol, as Delta's own description has them."""
    detail = served.spark.sql(f"DESCRIBE DETAIL {name}").collect()[0].asDict()
    told = served.spark.table(name).schema.json()
    return [
        told,
        *(detail[one] for one in ("id", "partitionColumns", "properties", "minWriterVersion", "tableFeatures")),
    ]


@pytest.mark.skipif("delta" not in HERE, reason="no Delta Lake for this Spark")
def test_a_delta_table_keeps_what_it_is(served: Served, tmp_path: Path) -> None:
    """Its partitions, names, identity and generated columns, constraints; and who follows its changes sees none."""
    spark, name = served.spark, f"delta.`{tmp_path / 'kept'}`"
    spark.sql(
        f"CREATE TABLE {name} (v BIGINT GENERATED ALWAYS AS IDENTITY, k BIGINT NOT NULL, w INT, `2 k` BIGINT GENERATED ALWAYS AS "
        "(k * 2), day DATE, m MAP<STRING, INT>) USING delta PARTITIONED BY (day) TBLPROPERTIES ("
        "'delta.columnMapping.mode' = 'name', 'delta.enableChangeDataFeed' = 'true', 'delta.appendOnly' = 'true', 'mine' = 'yes')"
    )
    spark.sql(f"ALTER TABLE {name} ADD CONSTRAINT small CHECK (w < 1000)")
    new = rows(spark).where("k IS NOT NULL").repartition(3)
    new.createOrReplaceTempView("new_rows")
    insert = f"INSERT INTO {name} (k, w, day, m) SELECT k, w, DATE '2024-01-01' + CAST(v % 2 AS INT), map(s, w) FROM new_rows"
    spark.sql(insert)
    asked = [f"{one} AND day >= DATE '2024-01-02'" for one in conditions(count=12)]
    ask(served, name, str(tmp_path / "kept"), asked)
    before, kept = spark.table(name).selectExpr("* EXCEPT (m)", "to_json(m)"), metadata(served, name)
    expected = Counter(tuple(row) for row in before.collect())
    made = served.lake.table(str(tmp_path / "kept")).organise(in_place=True, dry_run=False)
    assert made.done == "rewritten", made
    after = spark.table(name).selectExpr("* EXCEPT (m)", "to_json(m)")
    assert Counter(tuple(row) for row in after.collect()) == expected
    assert metadata(served, name) == kept
    changes = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", made.version)
    assert changes.load(str(tmp_path / "kept")).count() == 0
    spark.sql(f"{insert} WHERE v < 10")
    assert spark.sql(f"SELECT count(*), count(DISTINCT v) FROM {name}").collect() == [
        (len(expected) + 9, len(expected) + 9)
    ]


@pytest.mark.skipif("delta" not in HERE, reason="no Delta Lake for this Spark")
def test_partitions_that_no_row_was_sampled_of_are_not_taken_to_be_skipped(served: Served, tmp_path: Path) -> None:
    path = str(tmp_path / "by_day")
    days = rows(served.spark, 2_400).selectExpr("*", "CAST(v % 12 AS INT) AS day").repartition(1)
    days.write.format("delta").partitionBy("day").save(path)
    ask(served, f"delta.`{path}`", path, [f"{one} AND day = 7" for one in conditions(count=12)])
    told = served.lake.table(path).organise(in_place=True)
    assert told.done == "nothing", told
    assert told.read_before == pytest.approx(1 / 12)


@pytest.mark.skipif("iceberg" not in HERE, reason="no Iceberg for this Spark")
def test_an_iceberg_table_keeps_partitions_and_ids_of_rows(served: Served) -> None:
    spark, name = served.spark, "ice.db.kept_in_place"
    spark.sql(
        f"CREATE TABLE {name} (k BIGINT, w INT, v BIGINT, `a day` DATE, m MAP<STRING, INT>) USING iceberg PARTITIONED BY "
        "(months(`a day`), bucket(2, v)) TBLPROPERTIES ('format-version' = '3')"
    )
    new = rows(spark).selectExpr("k", "w", "v", "DATE '2024-01-20' + CAST(v % 20 AS INT) AS `a day`", "map(s, w) AS m")
    new.writeTo(name).append()
    ask(served, name, f"{spark.conf.get('spark.sql.catalog.ice.warehouse')}/db/kept_in_place", conditions(count=12))
    ids = f"SELECT k, w, v, `a day`, to_json(m), _row_id, _last_updated_sequence_number FROM {name}"
    expected = Counter(tuple(row) for row in spark.sql(ids).collect())
    partitions = f"SELECT partition, record_count FROM {name}.partitions ORDER BY 1"
    kept = spark.sql(partitions).collect()
    table = served.lake.table(name)
    made = table.organise(in_place=True, dry_run=False)
    assert made.done == "rewritten", made
    assert Counter(tuple(row) for row in spark.sql(ids).collect()) == expected
    assert spark.sql(partitions).collect() == kept
    operation = spark.sql(f"SELECT operation FROM {name}.snapshots WHERE snapshot_id = {made.version}").collect()
    assert operation == [("replace",)]
    spark.sql(f"ALTER TABLE {name} DROP PARTITION FIELD bucket(2, v)")
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_IN_PLACE\].*a partitioning that it had before"):
        served.lake.table(name).organise(in_place=True)


def killed(*_: object) -> None:
    """After all was written, before the commit."""
    raise KeyboardInterrupt


def test_what_goes_wrong_changes_nothing(
    served: Served, lake: LakeFormat, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table = served.lake.table(lake.path)
    with pytest.raises(InvalidStatement, match="no query with a condition"):
        table.organise(in_place=True)
    ask(served, lake.sql, lake.path, conditions(count=4))
    with pytest.raises(InvalidConfig, match=r"\[INVALID_CONFIG_BUDGET\].*too small to rewrite any file"):
        table.organise(100, in_place=True)
    before, at = held(served, lake.sql), lake.version()
    with monkeypatch.context() as patched:
        patched.setattr(in_place, "laid_out", lambda frame, *others: frame.limit(7))
        with pytest.raises(GrebeError, match="GREBE_ERROR_ROWS_LOST"):
            table.organise(in_place=True, dry_run=False)
    with monkeypatch.context() as patched:
        patched.setattr(in_place, "laid_out", lambda frame, *others: frame.selectExpr("*", "no_such_column"))
        with pytest.raises(GrebeError, match=r"GREBE_ERROR_SPARK.*Nothing was changed"):
            table.organise(in_place=True, dry_run=False)
    with monkeypatch.context() as patched:
        for rewriting in (delta_rewrite, iceberg_rewrite):
            patched.setattr(rewriting, "require_same_rows", killed)
        with pytest.raises(KeyboardInterrupt):
            table.organise(in_place=True, dry_run=False)
    assert (held(served, lake.sql), lake.version()) == (before, at)
    most = table.organise("90%", in_place=True, dry_run=False)
    assert (most.done, most.files) == ("rewritten", 3), most
    assert held(served, lake.sql) == before


@pytest.mark.skipif("delta" not in HERE, reason="no Delta Lake for this Spark")
def test_what_cannot_be_kept_is_refused(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spark, plain = served.spark, str(tmp_path / "plain")
    rows(spark, 10).write.parquet(plain)
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_IN_PLACE_FORMAT\].*plain files.*without in_place"):
        served.lake.table(plain).organise(in_place=True)
    for number, (clause, why) in enumerate(
        [
            ("(k BIGINT) USING delta CLUSTER BY (k)", "is clustered"),
            ("(k BIGINT) USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true')", "tracks its rows"),
            ("(k BIGINT, _grebe_leaf INT) USING delta", "has a column _grebe_leaf"),
        ]
    ):
        path = str(tmp_path / f"t{number}")
        spark.sql(f"CREATE TABLE delta.`{path}` {clause}")
        with pytest.raises(Unsupported, match=rf"\[UNSUPPORTED_IN_PLACE\].*{why}"):
            served.lake.table(path).organise(in_place=True)
    path = str(tmp_path / "simple")
    rows(spark, 2_000).write.format("delta").save(path)
    ask(served, f"delta.`{path}`", path, conditions(count=2))
    table = served.lake.table(path)
    with monkeypatch.context() as patched:
        patched.setattr(delta_rewrite, "_EXTENSION", "another.Extension")
        with pytest.raises(Unsupported, match="UNSUPPORTED_IN_PLACE_EXTENSION"):
            table.organise(in_place=True)
    small = table.organise(in_place=True)
    assert small.done == "nothing", small
    with monkeypatch.context() as patched:
        patched.setattr(delta_rewrite, "_OPERATION", "NotThere")
        source = table.newest
        assert isinstance(source, LakeSource)
        assert isinstance(source.lake, DeltaSource)
        with pytest.raises(Unsupported, match="UNSUPPORTED_IN_PLACE_VERSION"):
            delta_rewrite.rewrite_delta(spark, source.lake, (), lambda frame, _: frame)


@pytest.mark.skipif("iceberg" not in HERE, reason="no Iceberg for this Spark")
def test_a_commit_that_may_have_happened_is_told_so(spark: "SparkSession") -> None:
    jvm: Any = spark._jvm
    unknown = jvm.org.apache.iceberg.exceptions.CommitStateUnknownException(jvm.java.io.IOException("gone"))
    with (
        pytest.raises(StoreUnreachable, match=r"\[STORE_UNREACHABLE_COMMIT\].*is not known"),
        table_rewrite.format_errors("t", (), "the commit"),
    ):
        raise Py4JJavaError("o1.commit", unknown)
