"""What the bridge to Spark refuses before it asks Spark for anything."""

import json
from typing import Any

import numpy as np
import pytest

from grebe.errors import GrebeError, InvalidIndex, Unsupported
from grebe.files import FileList
from grebe.spark import readings, source
from grebe.spark.attaching import Attached
from grebe.spark.shim import jar_for
from grebe.store.hadoop import hadoop_store

NOTHING: Any = None
CSV = {
    "format": "CSV",
    "format_class": "org.apache.spark.sql.execution.datasources.csv.CSVFileFormat",
    "files_class": "org.apache.spark.sql.execution.datasources.InMemoryFileIndex",
    "options": {"mode": "dropMalformed"},
    "data_schema": json.dumps({"type": "struct", "fields": []}),
    "partition_schema": json.dumps({"type": "struct", "fields": []}),
}


def test_a_spark_of_another_scala_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(Unsupported, match=r"built with Scala 2\.11; Grebe has jars for 2\.12.* and 2\.13") as refused:
        jar_for("2.11")
    assert refused.value.code == "UNSUPPORTED_SCALA_VERSION"


def test_a_session_of_connect_has_no_jvm_to_reach_hadoop_by() -> None:
    with pytest.raises(Unsupported, match="no JVM of its own to reach Hadoop by; use a classic session") as refused:
        hadoop_store(object(), "hdfs://node/t")  # type: ignore[arg-type]  # as bare as a session of Connect
    assert refused.value.code == "UNSUPPORTED_SPARK_CONNECT"


def test_a_frame_of_connect_hides_its_plan() -> None:
    with pytest.raises(Unsupported, match="hides its plan; give the query as SQL text") as refused:
        Attached.explain(NOTHING, object())  # type: ignore[arg-type]  # as bare as a frame of Connect
    assert refused.value.code == "UNSUPPORTED_SPARK_CONNECT"


def test_what_is_no_relation_of_files_is_named() -> None:
    with pytest.raises(InvalidIndex, match=r"some_view .* is a Union; give the table itself: its path") as refused:
        source.plain_source(NOTHING, NOTHING, "some_view", NOTHING, {"node": "Union"})
    assert refused.value.code == "INVALID_INDEX_NOT_ONE_TABLE"


def test_parts_in_several_stores_are_indexed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "session_settings", lambda session, shim: {})
    relation = {**CSV, "roots": ["s3://one/t", "s3://two/t"]}
    with pytest.raises(
        Unsupported, match="the parts of the DataFrame lie in several stores; index each part"
    ) as refused:
        source.plain_source(NOTHING, NOTHING, NOTHING, NOTHING, relation)
    assert refused.value.code == "UNSUPPORTED_SEVERAL_STORES"


def test_records_that_come_and_go_with_the_columns_asked_for_are_not_indexed() -> None:
    with pytest.raises(Unsupported, match=r"mode=DROPMALFORMED .* read the table with mode=PERMISSIVE") as refused:
        readings.reading_of(CSV, readings.with_defaults(dict.fromkeys(readings.SETTINGS)))
    assert refused.value.code == "UNSUPPORTED_DROPMALFORMED"


def test_a_file_id_that_spark_has_no_room_for_is_not_cut() -> None:
    files = FileList.build("file:///t", ["a"], [1], [1])
    with pytest.raises(GrebeError, match=r"file ids beyond 2\^31") as refused:
        source.arrow_bytes(files, np.array([2**31], np.uint32))
    assert refused.value.code == "GREBE_ERROR"
