"""How Spark reads a relation, as a `Reading`: the format, the options and settings that change values, and the columns."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from grebe.errors import Unsupported
from grebe.formats import Column, Reading
from grebe.formats.options import BY_ID, READER_SETTINGS, SESSION_ZONE, is_digest
from grebe.formats.reading import columns_of
from grebe.formats.registry import format_named
from grebe.indexes.columns import spark_schema
from grebe.sources.delta import delta_columns
from grebe.sources.iceberg_schema import iceberg_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrameReader, SparkSession

_PACKAGE = "org.apache.spark.sql.execution.datasources."
FORMATS = {
    f"{_PACKAGE}parquet.ParquetFileFormat": "parquet",
    f"{_PACKAGE}orc.OrcFileFormat": "orc",
    "org.apache.spark.sql.hive.orc.OrcFileFormat": "orc",
    f"{_PACKAGE}csv.CSVFileFormat": "csv",
    f"{_PACKAGE}json.JsonFileFormat": "json",
    f"{_PACKAGE}text.TextFileFormat": "text",
    "org.apache.spark.sql.avro.AvroFileFormat": "avro",
}
"""Exactly these classes: a format of a lake table is a subclass, and decides by itself which rows of a file count."""
FILE_INDEXES = {
    f"{_PACKAGE}InMemoryFileIndex",
    f"{_PACKAGE}CatalogFileIndex",
    f"{_PACKAGE}PrunedInMemoryFileIndex",
}

# By the class of the files or, where there is none, of the scan: just those of a query, never of a command.
_LAKES = {
    "org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex": "delta",
    "org.apache.hudi.HoodieFileIndex": "hudi",
    "org.apache.iceberg.spark.source.SparkBatchQueryScan": "iceberg",
}

_FIELD_ID = "parquet.field.id"
SETTINGS = READER_SETTINGS
_REBASING = {
    "spark.sql.parquet.datetimeRebaseModeInRead": "datetimerebasemode",
    "spark.sql.parquet.int96RebaseModeInRead": "int96rebasemode",
}
_OF_FORMAT = {
    name: (f"spark.sql.{name}.", f"spark.sql.legacy.{name}.", f"{name}.")
    for name in ("parquet", "orc", "avro", "csv", "json")
}
# Formats whose records may be malformed: which are, and what is left of them, hangs on the columns that a query asks for.
_PARSED = {"csv", "json"}
# What a catalog keeps with a table, and what Grebe itself adds.
_NO_OPTIONS = {"serialization.format", "grebe"}


def with_defaults(settings: Mapping[str, str | None]) -> dict[str, str]:
    """Spark says only what was set."""
    return {name: value if value is not None else SETTINGS.get(name, "") for name, value in settings.items()}


def is_ours(relation: Mapping[str, Any]) -> bool:
    """Whether the relation is one of plain files, or of a lake format."""
    return lake_of(relation) is not None or (
        relation["format_class"] in FORMATS and relation["files_class"] in FILE_INDEXES
    )


def lake_of(relation: Mapping[str, Any]) -> str | None:
    return _LAKES.get(relation["files_class"] or relation["format_class"])


def lake_reading(columns: Sequence[Column], settings: Mapping[str, str], zone: str) -> Reading:
    """Of the files of a lake table, which are Parquet. The zone is that in which partitions are told, if they are timestamps."""
    known = format_named("parquet")
    options = known.options.of_reading({}) | _from_settings("parquet", {}, settings)
    options.pop(BY_ID, None)  # the table format says how its columns are found
    return Reading.of("parquet", options, columns, zone, local_times=False)


def reading_of(relation: Mapping[str, Any], settings: Mapping[str, str]) -> Reading:
    """Of a relation as the Java part describes it, under these settings of its session."""
    lake = lake_of(relation)
    if lake is not None:
        return lake_reading(_lake_columns(lake, relation), settings, settings[SESSION_ZONE])
    name = FORMATS.get(relation["format_class"])
    if name is None:
        raise Unsupported(f"files of {relation['format']} are none that Grebe knows to read", detail="FORMAT")
    known = format_named(name)
    options = {key: value for key, value in relation["options"].items() if key.lower() not in _NO_OPTIONS}
    # A reader's own option outranks the session's zone.
    zone = next((value for key, value in options.items() if key.lower() == "timezone"), None)
    given = known.options.of_reading(options) | _from_settings(name, options, settings)
    if _FIELD_ID not in relation["data_schema"]:
        given.pop(
            BY_ID, None
        )  # nothing is found by an id, whatever the setting (which Delta Lake switches on by itself)
    partitions = columns_of(json.loads(relation["partition_schema"]))
    names = {column.name.lower() for column in partitions}
    own = [column for column in columns_of(json.loads(relation["data_schema"])) if column.name.lower() not in names]
    if name in _PARSED:
        _require_whole_records(given)
        malformed = _column_of_malformed(options, settings)
        own = [column for column in own if column.name != malformed]
    columns = (*own, *(Column(column.name, column.type, partition=True) for column in partitions))
    zone = zone or settings[SESSION_ZONE]
    of_jvm = _zone_of_jvm() if name == "orc" and any(map(_zoned, own)) else None
    if of_jvm is not None and of_jvm != zone:
        if any(map(_zoned, partitions)):
            # Two zones at once are more than a reading has room for, and more than anybody but Spark reads by.
            given[SESSION_ZONE] = zone
        zone = of_jvm
    return Reading.of(
        name,
        given,
        columns,
        zone,
        local_times=known.local_times,
        by_position=known.by_position,
    )


def _lake_columns(lake: str, relation: Mapping[str, Any]) -> tuple[Column, ...]:
    schema, partitions = json.loads(relation["data_schema"]), json.loads(relation["partition_schema"])
    if lake == "delta":
        return delta_columns(schema["fields"], [one["name"] for one in partitions["fields"]])
    if lake == "iceberg":
        return iceberg_columns(schema)
    return (*columns_of(schema), *columns_of(partitions))


def _zoned(column: Column) -> bool:
    return "timestamp" in column.type.replace("timestamp_ntz", "")


def _zone_of_jvm() -> str | None:
    """Where Spark's reader of ORC takes local times from, whatever the session's zone; None outside of Spark."""
    from pyspark import SparkContext

    return None if SparkContext._jvm is None else _default_zone(SparkContext._jvm)


@cache
def _default_zone(jvm: Any) -> str:
    return str(jvm.java.util.TimeZone.getDefault().getID())


def _require_whole_records(options: Mapping[str, str]) -> None:
    if options.get("mode", "").upper() == "DROPMALFORMED":
        raise Unsupported(
            "with mode=DROPMALFORMED it depends on the columns of a query which rows there are, so that no index can hold them; "
            "read the table with mode=PERMISSIVE",
            detail="DROPMALFORMED",
        )


def _column_of_malformed(options: Mapping[str, str], settings: Mapping[str, str]) -> str:
    setting = "spark.sql.columnNameOfCorruptRecord"
    given = (value for key, value in options.items() if key.lower() == "columnnameofcorruptrecord")
    return next(given, settings.get(setting, SETTINGS[setting]))


def _from_settings(name: str, options: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    low = {key.lower() for key in options}
    found = {}
    for setting, default in SETTINGS.items():
        owner = next((form for form, prefixes in _OF_FORMAT.items() if setting.startswith(prefixes)), None)
        value = settings.get(setting, default)
        if setting == SESSION_ZONE or owner not in (None, name) or value in ("", default):
            continue
        option = _REBASING.get(setting)
        if option is None:
            found[setting] = value
        elif option not in low and value != "EXCEPTION":
            found[option] = value
    return found


def reader_for(session: "SparkSession", reading: Reading) -> "DataFrameReader":
    """What reads plain files in this way."""
    from pyspark.sql.types import StructType

    defaulted = sorted(column.name for column in reading.columns if column.default is not None)
    if defaulted:
        # The default is SQL out of a log: nobody may have Spark evaluate it.
        raise Unsupported(
            f"column {', '.join(defaulted)} has a default for files without it, which Grebe does not hand on to another reader; "
            "give the name of the table, or the DataFrame that reads it",
            detail="COLUMN_DEFAULT",
        )
    schema = StructType.fromJson(spark_schema((column.name, column.type) for column in reading.columns))
    return session.read.format(reading.format).schema(schema).options(**reader_options(reading))


def reader_options(reading: Reading) -> dict[str, str]:
    """Return the options, other than defaults, that make Spark read in this way."""
    unknown = sorted(hidden_options(reading))
    if unknown:
        raise Unsupported(
            f"the table is read with the option {', '.join(unknown)}, of which only a digest is kept, since it may be a secret; "
            "give the options again, or the DataFrame that reads the table",
            detail="OPTION_NOT_KEPT",
        )
    defaults = format_named(reading.format).options.defaults
    options = {name: value for name, value in reading.options if defaults.get(name) != value and "." not in name}
    return options | ({} if reading.time_zone is None else {"timeZone": reading.time_zone})


def hidden_options(reading: Reading) -> list[str]:
    """Return the names of options whose values are not known any more."""
    return [name for name, value in reading.options if is_digest(value)]
