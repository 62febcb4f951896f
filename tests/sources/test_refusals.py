"""What cannot be opened or read as a table, by its code, without Spark."""

import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grebe
from grebe.errors import GrebeError, StoreUnreachable, TableNotFound, UnreadableFile, Unsupported
from grebe.formats import Column
from grebe.sources import Request, open_source
from grebe.sources.hudi import HudiSource
from grebe.sources.iceberg import _positions
from grebe.sources.iceberg_io import file_io
from grebe.sources.lake import LakeFiles
from grebe.store.memory import MemoryStore

SCHEMA = {"type": "struct", "fields": [{"name": "a", "type": "long", "nullable": True, "metadata": {}}]}
PLAIN_DELTA: dict[str, object] = {"minReaderVersion": 1, "minWriterVersion": 2}
HUDI = (
    "hoodie.table.name=t\nhoodie.table.type=COPY_ON_WRITE\nhoodie.table.version=6\nhoodie.timeline.layout.version=1\n"
)


def write(path: Path, **columns: list[object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def write_delta(folder: Path, protocol: dict[str, object], metadata: dict[str, object] | None = None) -> None:
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    table = {
        "id": "t",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(SCHEMA),
        "partitionColumns": [],
        "configuration": {},
    }
    lines = [{"protocol": protocol}, {"metaData": table if metadata is None else metadata}]
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, lines)))


@pytest.mark.parametrize(("name", "what"), [("{a,b", "brace"), ("[ab", "bracket")])
def test_a_glob_that_is_not_closed_is_named(tmp_path: Path, name: str, what: str) -> None:
    with pytest.raises(TableNotFound, match=rf"the glob \{name} opens a {what} and does not close it") as refused:
        grebe.open(str(tmp_path / name))
    assert refused.value.code == "TABLE_NOT_FOUND_GLOB"


def test_a_glob_that_nothing_matches_is_named(tmp_path: Path) -> None:
    with pytest.raises(TableNotFound, match=r"nothing matches file://.*/missing\*") as missing:
        grebe.open(str(tmp_path / "missing*"))
    assert missing.value.code == "TABLE_NOT_FOUND_NO_MATCH"


def test_a_folder_of_which_spark_would_read_no_file_says_what_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "empty.parquet").touch()
    with pytest.raises(
        TableNotFound, match="has 1 files, and Spark would read none: hidden names and empty"
    ) as missing:
        grebe.open(str(tmp_path))
    assert missing.value.code == "TABLE_NOT_FOUND_NO_DATA"


def test_types_that_nothing_holds_together_are_not_merged(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", a=[1])
    write(tmp_path / "b.parquet", a=["x"])
    with pytest.raises(Unsupported, match=f"{tmp_path} have a column of types.*; give a schema") as refused:
        open_source(tmp_path, options={"mergeSchema": "true"}).schema()
    assert refused.value.code == "UNSUPPORTED_MERGE_SCHEMA"


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (("p=1/x.parquet", "q=1/x.parquet"), "different partition columns: p; q; open each"),
        (("p=/x.parquet",), "p= has no name or no value at its `=`; rename it"),
        (("a/p=1/x.parquet", "b/p=1/x.parquet"), "do not belong to one partitioned table; give the option basePath"),
    ],
)
def test_folders_that_are_no_partitions_of_one_table_are_refused(
    tmp_path: Path, paths: tuple[str, ...], said: str
) -> None:
    for path in paths:
        write(tmp_path / path, a=[1])
    with pytest.raises(Unsupported, match=said) as refused:
        grebe.open(str(tmp_path)).scan("a = 1")
    assert refused.value.code == "UNSUPPORTED_PARTITIONS"


def test_a_folder_whose_value_is_not_of_the_given_type_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "p=x" / "a.parquet", a=[1])
    source = open_source(tmp_path, schema=[Column("a", "long"), Column("p", "integer", partition=True)])
    files = source.files()
    with pytest.raises(Unsupported, match="a value for p that is no integer; list the table again") as refused:
        source.partition_values(files, source.reading(files))
    assert refused.value.code == "UNSUPPORTED_PARTITION_VALUE"


def test_a_lake_table_is_one_path(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="Delta Lake is one path, and 2 were given; open each by itself") as refused:
        open_source([tmp_path / "a", tmp_path / "b"], format="delta")
    assert refused.value.code == "UNSUPPORTED_SEVERAL_PATHS"


@pytest.mark.parametrize(("format", "package"), [("delta", "deltalake"), ("iceberg", "pyiceberg"), ("hudi", "hudi")])
def test_a_format_whose_package_is_not_installed_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(Unsupported, match=rf"need the package {package}: pip install 'grebe\[{format}\]'") as refused:
        grebe.open(str(tmp_path), format=format)
    assert refused.value.code == "UNSUPPORTED_PACKAGE"


@pytest.mark.parametrize(
    ("protocol", "reason"),
    [
        ({"minReaderVersion": 99, "minWriterVersion": 99}, "version 99"),
        (
            {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["far"], "writerFeatures": ["far"]},
            "'far' is not supported",
        ),
    ],
)
def test_a_delta_table_that_asks_for_a_newer_reader_says_so(
    tmp_path: Path, protocol: dict[str, object], reason: str
) -> None:
    write_delta(tmp_path, protocol)
    with pytest.raises(
        Unsupported, match=rf"{tmp_path} asks .* deltalake cannot do \(.*{reason}\); query it"
    ) as refused:
        grebe.open(str(tmp_path))
    assert refused.value.code == "UNSUPPORTED_DELTA"


def test_a_delta_log_without_sense_is_damaged_and_named(tmp_path: Path) -> None:
    write_delta(tmp_path, PLAIN_DELTA, metadata={})
    (log,) = (tmp_path / "_delta_log").iterdir()
    for content in (log.read_bytes(), b"", b"\xff\0", b"[" * 5_000, b'{"add": {"path": "a", "size": "secret"}}'):
        log.write_bytes(content)
        with pytest.raises(UnreadableFile, match=f"log of file://{tmp_path} is damaged") as damaged:
            grebe.open(str(tmp_path))
        assert damaged.value.code == "UNREADABLE_FILE_DELTA"
        assert "secret" not in str(damaged.value)


def test_a_store_that_does_not_answer_deltalake_is_no_damage() -> None:
    nobody = {"endpoint": "http://127.0.0.1:1", "allow_http": "true", "region": "us-east-1", "max_retries": "0"}
    secret = {"access_key_id": "key", "secret_access_key": "hidden"}
    with pytest.raises(
        StoreUnreachable, match=r"log of s3://lake/t could not be read .*; look at its store and storage_options"
    ) as lost:
        open_source(
            "s3://lake/t",
            "delta",
            storage_options={**nobody, **secret},
            open_store=lambda uri, options: MemoryStore("lake"),
        )
    assert lost.value.code == "STORE_UNREACHABLE_DELTA"
    assert "hidden" not in str(lost.value)


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        (HUDI.replace("version=6", "version=99"), "Found: 99"),
        (f"{HUDI}hoodie.table.base.file.format=ORC\n", "ORC"),
        (f"{HUDI}hoodie.datasource.write.drop.partition.columns=true\n", r"drop\.partition\.columns"),
    ],
)
def test_a_hudi_table_that_asks_for_another_reader_says_so(tmp_path: Path, properties: str, reason: str) -> None:
    (tmp_path / ".hoodie").mkdir()
    (tmp_path / ".hoodie" / "hoodie.properties").write_text(properties)
    with pytest.raises(
        Unsupported, match=rf"{tmp_path} asks .* cannot do \(.*{reason}.*\); query it in Spark"
    ) as refused:
        grebe.open(str(tmp_path))
    assert refused.value.code == "UNSUPPORTED_HUDI"


def test_a_hudi_timeline_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / ".hoodie").mkdir()
    (tmp_path / ".hoodie" / "hoodie.properties").write_text(HUDI)
    (tmp_path / ".hoodie" / "20240101000000000.commit").write_text("no JSON")
    with pytest.raises(StoreUnreachable, match=f"timeline of file://{tmp_path} could not be read; look at its") as lost:
        grebe.open(str(tmp_path))
    assert lost.value.code == "STORE_UNREACHABLE_HUDI"


def test_hudi_files_that_are_only_half_of_their_slice_are_not_read() -> None:
    uri, store = "memory://lake", MemoryStore("lake")
    listed = LakeFiles.build(uri, [f"{uri}/a.parquet"], [1], [0])
    source = HudiSource(uri, store, Request((uri,)), "20240101000000000", (), (), listed, merged=2)
    with pytest.raises(
        Unsupported, match=r"2 file slices of memory://lake have log files.*; query it there, or compact"
    ) as half:
        source.data_files(source.files())
    assert half.value.code == "UNSUPPORTED_LOG_FILES"


def test_of_two_newest_metadata_files_of_iceberg_the_user_must_say_which_counts(tmp_path: Path) -> None:
    (tmp_path / "metadata").mkdir()
    for name in "ab":
        (tmp_path / "metadata" / f"00001-{name}.metadata.json").write_text("{}")
    with pytest.raises(
        Unsupported, match="2 metadata files with number 1; name the one that counts by its path"
    ) as two:
        grebe.open(str(tmp_path))
    assert two.value.code == "UNSUPPORTED_METADATA"


def test_deleted_rows_in_a_file_that_is_no_parquet_are_refused() -> None:
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat

    store = MemoryStore("lake")
    store.put("gone.avro", b"Obj")
    kept = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES, file_path="memory://lake/gone.avro", file_format=FileFormat.AVRO
    )
    with pytest.raises(
        Unsupported, match=r"lake/gone\.avro keeps deleted rows as .*AVRO; read the table in Spark"
    ) as no:
        _positions(kept, "memory://lake/a.parquet", 1, Request(("memory://lake",)), store)
    assert no.value.code == "UNSUPPORTED_DELETES"


def test_pyiceberg_cannot_write_through_grebes_stores() -> None:
    reading = file_io(Request(("memory://lake",)), MemoryStore("lake"))
    for change in (reading.new_output, reading.delete):
        with pytest.raises(GrebeError, match=r"not to be written|to be removed") as refused:
            change("memory://lake/a.parquet")
        assert refused.value.code == "UNSUPPORTED_READ_ONLY"
