"""The same files read in another way are other rows: an index of one reading never serves another."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import grebe
from grebe.formats.options import READER_SETTINGS
from testbed.spark import configured
from tests.spark.served import Served, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("spark readings")]

SCHEMA = "k int, t timestamp, s string"
OPTIONS = {"header": "true", "timeZone": "Europe/Berlin"}


@pytest.fixture(scope="module")
def csv(served: Served, folder: Path) -> str:
    """Lines that mean something under many readings: a header that could be a row, cells with another delimiter in them."""
    place = folder / "csv"
    place.mkdir()
    for number in range(2):
        lines = (f"{n + number},2024-03-31 0{n % 10}:30:00,a;{n % 3 or 'none'}" for n in range(40))
        (place / f"{number}.csv").write_text("0,2024-01-01 00:00:00,header\n" + "\n".join(lines) + "\n")
    frame = served.spark.read.schema(SCHEMA).options(**OPTIONS).csv(str(place))
    served.lake.table(frame).create(grebe.Covering("csv_k", on="k", include=["t", "s"], buckets=4))
    return str(place)


def _read(place: str, schema: str, options: dict[str, Any]) -> Callable[["SparkSession"], "DataFrame"]:
    return lambda spark: (
        spark.read.schema(schema).options(**options).csv(place).where("k >= 3").groupBy("k", "s").count()
    )


def test_the_same_reading_is_served(served: Served, csv: str) -> None:
    served.same(_read(csv, SCHEMA, OPTIONS), "csv_k")
    served.same(_read(csv, SCHEMA, {"Header": "TRUE", "timezone": "Europe/Berlin", "inferSchema": "false"}), "csv_k")
    with configured(served.spark, {"spark.sql.session.timeZone": "Asia/Tokyo"}):
        served.same(_read(csv, SCHEMA, OPTIONS), "csv_k")


@pytest.mark.parametrize(
    "options",
    [
        {"header": "false"},
        {"sep": ";"},
        {"delimiter": ";"},
        {"nullValue": "a;none"},
        {"timeZone": "UTC"},
        {"mode": "DROPMALFORMED"},
        {"timestampFormat": "yyyy-MM-dd mm:HH:ss"},
        {"encoding": "UTF-16"},
        {"comment": "1"},
        {"ignoreTrailingWhiteSpace": "true", "lineSep": ";"},
    ],
    ids=str,
)
def test_another_option_is_another_reading(served: Served, csv: str, options: dict[str, str]) -> None:
    query = _read(csv, SCHEMA, {**OPTIONS, **options})
    served.same(query)
    assert served.reasons(query)["csv_k"] in ("READ_DIFFERENTLY", "UNSUPPORTED_RELATION")


@pytest.mark.parametrize(
    "schema", ["k long, t timestamp, s string", "k string, t timestamp, s string", "t string, k int, s string"]
)
def test_another_schema_is_another_reading(served: Served, csv: str, schema: str) -> None:
    query = _read(csv, schema, OPTIONS)
    served.same(query)
    assert served.reasons(query)["csv_k"] in ("READ_DIFFERENTLY", "COL_SCHEMA_MISMATCH")


def test_a_zone_that_comes_from_the_session_counts_where_it_matters(served: Served, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.csv").write_text("".join(f"{n},2024-03-31 0{n % 10}:30:00\n" for n in range(30)))

    def place(spark: "SparkSession") -> "DataFrame":
        return spark.read.schema("k int, t timestamp").csv(str(tmp_path / "t"))

    def timed(spark: "SparkSession") -> "DataFrame":
        return place(spark).where("k > 4")

    def untimed(spark: "SparkSession") -> "DataFrame":
        return timed(spark).select("k")

    served.lake.table(place(served.spark)).create(grebe.Covering("zoned", on="k", include="t", buckets=4))
    served.same(timed, "zoned")
    with configured(served.spark, {"spark.sql.session.timeZone": "Asia/Tokyo"}):
        served.same(timed)
        assert served.reasons(timed) == {"zoned": "READ_DIFFERENTLY"}
        served.same(untimed)


@pytest.mark.parametrize(
    ("schema", "columns", "serves"),
    [
        ("k bigint, v int, s string", "kv", True),
        ("v int, k bigint", "kv", True),
        ("k bigint, v int, s binary", "ks", False),
        ("k bigint, V int, s string", "kv", False),
        ("k bigint, v int, missing int, s string", "ksv", True),
    ],
)
def test_a_schema_of_the_users_on_parquet(
    served: Served, tmp_path: Path, schema: str, columns: str, serves: bool
) -> None:
    import pyarrow as pa

    place = write(
        tmp_path / "t", {"k": range(60), "v": pa.array(range(60), pa.int32()), "s": [f"s{n % 4}" for n in range(60)]}
    )
    served.lake.table(place).create(grebe.Covering("given", on="k", include=["v", "s"], buckets=4))
    served.same(
        lambda spark: spark.read.schema(schema).parquet(place).where("k > 7").selectExpr(*columns),
        *(["given"] if serves else []),
    )
    served.same(lambda spark: spark.read.schema("k bigint, absent string").parquet(place).where("k > 7"))


@pytest.mark.parametrize(
    "setting",
    [
        {"spark.sql.caseSensitive": "true"},
        {"spark.sql.files.ignoreMissingFiles": "true"},
        {"spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY"},
        {"spark.sql.legacy.parquet.datetimeRebaseModeInRead": "LEGACY"},
    ],
    ids=str,
)
def test_a_setting_that_changes_the_reading(served: Served, tmp_path: Path, setting: dict[str, str]) -> None:
    place = write(tmp_path / "t", {"k": range(60), "v": range(60)})
    served.lake.table(place).create(grebe.Covering("settled", on="k", include=["v"], buckets=4))
    query = f"SELECT v FROM parquet.`{place}` WHERE k > 50"
    served.same(query, "settled")
    with configured(served.spark, setting):
        served.same(query)
    served.same(query, "settled")


@pytest.mark.parametrize("place_of_setting", ["session", "Hadoop"])
def test_columns_of_orc_by_their_positions_are_another_reading(
    served: Served, tmp_path: Path, place_of_setting: str
) -> None:
    setting, place = "orc.force.positional.evolution", str(tmp_path / "t")
    served.spark.range(60).selectExpr("id AS k", "id * 2 AS v").coalesce(1).write.orc(place)

    def table(spark: "SparkSession") -> "DataFrame":
        return spark.read.schema("v bigint, k bigint").orc(place)

    def query(spark: "SparkSession") -> "DataFrame":
        return table(spark).where("k > 50")

    served.lake.table(table(served.spark)).create(grebe.Covering("named", on="k", include=["v"], buckets=2))
    served.same(query, "named")
    hadoop: Any = served.spark.sparkContext._jsc.hadoopConfiguration()
    if place_of_setting == "Hadoop":
        hadoop.set(setting, "true")
    try:
        with configured(served.spark, {setting: "true"} if place_of_setting == "session" else {}):
            served.same(query)
            assert served.reasons(query) == {"named": "READ_DIFFERENTLY"}
    finally:
        hadoop.unset(setting)
    served.same(query, "named")


def test_text_that_grew_or_was_rewritten_is_read_as_it_is_now(served: Served, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    file = tmp_path / "t" / "a.json"
    file.write_text("".join(f'{{"k": {n}, "v": "{n % 5}"}}\n' for n in range(50)))
    (tmp_path / "t" / "b.json").write_text('{"k": 1000, "v": "x"}\n' * 20)

    def table(spark: "SparkSession") -> "DataFrame":
        return spark.read.schema("k int, v string").json(str(tmp_path / "t"))

    def query(spark: "SparkSession") -> "DataFrame":
        return table(spark).where("k >= 0")

    served.lake.table(table(served.spark)).create(grebe.Covering("grown", on="k", include="v", buckets=4))
    served.same(query, "grown")
    with file.open("a") as more:
        more.write('{"k": 7, "v": "new"}\n')
    assert "new" in str(served.same(query, "grown").rows)
    file.write_text('{"k": 8, "v": "other"}\n')
    assert served.same(query, "grown").rows.total() == 21


def test_texts_of_json_under_another_setting_are_another_reading(served: Served, tmp_path: Path) -> None:
    setting = "spark.sql.json.enableExactStringParsing"
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a.json").write_text('{"k": 1, "s": {"a":  1.50}}\n{"k": 2, "s": [1,  2]}\n')
    (tmp_path / "t" / "b.json").write_text('{"k": 3, "s": 1.0}\n')

    def table(spark: "SparkSession") -> "DataFrame":
        return spark.read.schema("k int, s string").json(str(tmp_path / "t"))

    def query(spark: "SparkSession") -> "DataFrame":
        return table(spark).where("k >= 1")

    with configured(served.spark, {setting: "true"}):
        served.lake.table(table(served.spark)).create(grebe.Covering("exact", on="k", include="s"))
        served.same(query, "exact")
    with configured(served.spark, {setting: "false"}):
        served.same(query)
        assert served.reasons(query) == {"exact": "READ_DIFFERENTLY"}


def test_every_setting_of_spark_that_a_reader_consults_is_part_of_a_reading(spark: "SparkSession") -> None:
    """An entry of a newer Spark fails here until somebody has said whether it can change a value."""
    internal: Any = spark._jvm.org.apache.spark.sql.internal  # type: ignore[union-attr]
    entries = getattr(getattr(internal, "SQLConf$"), "MODULE$").getConfigEntries().iterator()
    found = {}
    while entries.hasNext():
        entry = entries.next()
        if entry.key() in READER_SETTINGS and entry.alternatives().nonEmpty():
            assert entry.alternatives().mkString(",") == entry.key().replace("spark.sql.", "spark.sql.legacy.", 1)
        if _of_readers(entry.key(), entry.doc()):
            found[entry.key()] = entry.defaultValueString()
    assert len(found) > 40
    assert found.keys() - READER_SETTINGS.keys() <= CHANGE_NO_VALUE
    assert not CHANGE_NO_VALUE & READER_SETTINGS.keys()
    defaults = {name: found[name] for name, default in READER_SETTINGS.items() if name in found and default}
    assert defaults == {name: READER_SETTINGS[name] for name in defaults}


def _of_readers(name: str, documented: str) -> bool:
    if re.match(r"spark\.sql\.(json|csv|parquet|orc|avro|files)\.", name):
        return True
    about = re.compile(r"\b(json|csv|parquet|orc|avro)\b|parser\b|reader\b|data ?source", re.IGNORECASE)
    return name.startswith("spark.sql.legacy.") and about.search(f"{name} {documented}") is not None


CHANGE_NO_VALUE = {
    f"spark.sql.{name}"
    for name in (
        # Of writers.
        *("avro.compression.codec", "avro.datetimeRebaseModeInWrite", "avro.deflate.level", "avro.xz.level"),
        *("avro.zstandard.bufferPool.enabled", "avro.zstandard.level", "files.maxRecordsPerFile"),
        *("legacy.allowEmptySchemaWrite", "legacy.nullValueWrittenAsQuotedEmptyStringCsv"),
        *("orc.columnarWriterBatchSize", "orc.compression.codec", "parquet.compression.codec"),
        *("parquet.datetimeRebaseModeInWrite", "parquet.fieldId.write.enabled", "parquet.int96RebaseModeInWrite"),
        *("parquet.output.committer.class", "parquet.outputTimestampType", "parquet.writeLegacyFormat"),
        "parquet.variant.annotateLogicalType.enabled",
        # Which files are read, as listings tell, and how many of them in a task.
        *("files.ignoreInvalidPartitionPaths", "files.ignoredPathSegmentRegex", "legacy.pathOptionBehavior.enabled"),
        *("files.maxPartitionBytes", "files.maxPartitionNum", "files.minPartitionNum", "files.openCostInBytes"),
        # How the schema is found, which a reading has itself.
        *("orc.mergeSchema", "parquet.mergeSchema", "parquet.respectSummaryFiles", "avro.schemaUrlAllowedSchemes"),
        "parquet.reader.respectUnknownTypeAnnotation.enabled",
        # Which class reads, and how fast: the same values.
        *("csv.filterPushdown.enabled", "json.filterPushdown.enabled", "avro.filterPushdown.enabled"),
        *("csv.parser.inputBufferSize", "json.useUnsafeRow", "legacy.replaceDatabricksSparkAvro.enabled"),
        *("orc.aggregatePushdown", "orc.columnarReaderBatchSize", "orc.enableNestedColumnVectorizedReader"),
        *("orc.enableVectorizedReader", "orc.filterPushdown", "orc.impl", "parquet.aggregatePushdown"),
        *("parquet.columnarReaderBatchSize", "parquet.enableNestedColumnVectorizedReader"),
        *("parquet.enableNullTypeVectorizedReader", "parquet.enableVectorizedReader", "parquet.filterPushdown"),
        *("parquet.filterPushdown.date", "parquet.filterPushdown.decimal", "parquet.filterPushdown.timestamp"),
        *("parquet.filterPushdown.string.startsWith", "parquet.filterPushdown.stringPredicate"),
        *("parquet.pushdown.inFilterThreshold", "parquet.recordLevelFilter.enabled"),
        # Of no files: Spark's own SQL, options of `table()`, Datasets of text; and of XML, which is never indexed.
        *("legacy.extraOptionsBehavior.enabled", "legacy.parser.havingWithoutGroupByAsWhere"),
        *("legacy.respectNullabilityInTextDatasetConversion", "legacy.useLegacyXMLParser"),
    )
}
