"""Metadata and manifests of Iceberg that name files outside of their table: nothing there is opened."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grebe
from grebe.errors import SourceChanged, Unsupported
from tests.sources.elsewhere import opened_in


@pytest.fixture
def iceberg(tmp_path: Path) -> Path:
    """The metadata of a table of one snapshot, as Iceberg writes it."""
    table = tmp_path / "iceberg"
    (table / "metadata").mkdir(parents=True)
    snapshot = {
        "snapshot-id": 1,
        "sequence-number": 1,
        "timestamp-ms": 1,
        "manifest-list": f"{table.as_uri()}/metadata/snap.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    metadata = {
        "format-version": 2,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": table.as_uri(),
        "last-sequence-number": 1,
        "last-updated-ms": 1,
        "last-column-id": 1,
        "current-schema-id": 0,
        "schemas": [
            {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "a", "required": False, "type": "long"}]}
        ],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "current-snapshot-id": 1,
        "snapshots": [snapshot],
    }
    (table / "metadata" / "v1.metadata.json").write_text(json.dumps(metadata))
    return table


def _forged(iceberg: Path, **changed: Any) -> None:
    place = iceberg / "metadata" / "v1.metadata.json"
    place.write_text(json.dumps({**json.loads(place.read_text()), **changed}))


def test_iceberg_metadata_that_says_it_lies_elsewhere_is_refused(iceberg: Path, hr: Path) -> None:
    _forged(iceberg, **{"current-snapshot-id": -1, "snapshots": []})
    assert grebe.open(str(iceberg)).schema.names == ["a"]
    _forged(iceberg, location=hr.parent.as_uri())
    with pytest.raises(Unsupported, match="allowed_roots"):
        grebe.open(str(iceberg))


def test_iceberg_metadata_that_names_a_host_asks_nothing_of_it(iceberg: Path, heard: tuple[str, list[str]]) -> None:
    url, asked = heard
    (snapshot,) = json.loads((iceberg / "metadata" / "v1.metadata.json").read_text())["snapshots"]
    _forged(iceberg, snapshots=[{**snapshot, "manifest-list": f"{url}/snap.avro"}])
    with pytest.raises(Unsupported, match="allowed_roots"):
        grebe.open(str(iceberg))
    assert not asked


def _manifests(iceberg: Path, data: str, deletes: str | None = None, manifest: str | None = None) -> None:
    """Write the manifests of the one snapshot. They name a file of data, and one of deleted rows, by any location; and the list of
    them may name a manifest by any."""
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.manifest import (
        DataFile,
        DataFileContent,
        FileFormat,
        ManifestContent,
        ManifestEntry,
        ManifestEntryStatus,
        ManifestWriterV2,
        write_manifest_list,
    )
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.typedef import Record
    from pyiceberg.types import LongType, NestedField

    class DeletesWriter(ManifestWriterV2):
        def content(self) -> ManifestContent:
            return ManifestContent.DELETES

    io, folder = PyArrowFileIO(), f"{iceberg.as_uri()}/metadata"
    schema = Schema(NestedField(1, "a", LongType(), required=False))
    manifests = []
    for location, content in ((data, DataFileContent.DATA), (deletes, DataFileContent.POSITION_DELETES)):
        if location is None:
            continue
        file = DataFile.from_args(
            content=content,
            file_path=location,
            file_format=FileFormat.PARQUET,
            partition=Record(),
            record_count=10,
            file_size_in_bytes=_size(location),
        )
        added: dict[str, Any] = {
            "status": ManifestEntryStatus.ADDED,
            "snapshot_id": 1,
            "sequence_number": 1,
            "file_sequence_number": 1,
        }
        kind = ManifestWriterV2 if content is DataFileContent.DATA else DeletesWriter
        with kind(PartitionSpec(), schema, io.new_output(f"{folder}/{content.name}.avro"), 1, "null") as writer:
            writer.add_entry(ManifestEntry.from_args(**added, data_file=file))
        manifests.append(writer.to_manifest_file())
    if manifest is not None:
        manifests[0]._data[0] = manifest
    with write_manifest_list(2, io.new_output(f"{folder}/snap.avro"), 1, None, 1, "null") as listed:
        listed.add_manifests(manifests)


def _size(location: str) -> int:
    place = Path(location.removeprefix("file://"))
    return place.stat().st_size if place.exists() else 1_000


@pytest.fixture
def iceberg_rows(iceberg: Path) -> Callable[..., list[int]]:
    """Give the rows of a table of ten, of which three are deleted by a file in the table, if nothing is forged."""
    field = pa.field("a", pa.int64(), metadata={"PARQUET:field_id": "1"})
    own, gone = iceberg / "data" / "a.parquet", iceberg / "data" / "gone.parquet"
    own.parent.mkdir()
    pq.write_table(pa.table([pa.array(range(10), pa.int64())], pa.schema([field])), own)
    pq.write_table(pa.table({"file_path": [own.as_uri()] * 3, "pos": pa.array([1, 2, 3], pa.int64())}), gone)

    def rows(data: str | None = None, deletes: str | None = None, manifest: str | None = None) -> list[int]:
        _manifests(iceberg, data or own.as_uri(), deletes or gone.as_uri(), manifest)
        return sorted(grebe.open(str(iceberg)).scan("a >= 0")["a"].to_pylist())

    return rows


@pytest.mark.parametrize("part", ["data", "deletes", "manifest"])
def test_iceberg_manifests_that_name_a_file_elsewhere_open_nothing_there(
    part: str, iceberg: Path, iceberg_rows: Callable[..., list[int]], hr: Path, heard: tuple[str, list[str]]
) -> None:
    assert iceberg_rows() == [0, *range(4, 10)]
    url, asked = heard
    for name in ("gone.parquet", "DATA.avro"):
        (hr.parent / name).write_bytes(next(iceberg.rglob(name)).read_bytes())
    name = {"data": hr.name, "deletes": "gone.parquet", "manifest": "DATA.avro"}[part]
    with opened_in(hr.parent) as opened:
        for location in (
            (hr.parent / name).as_uri(),
            str(hr.parent / name),
            f"file:{hr.parent / name}",
            f"{iceberg.as_uri()}/../hr/{name}",
            f"{iceberg.as_uri()}/x/../../hr/{name}",
            f"{url}/{name}",
            f"s3://another/{name}",
        ):
            with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_OUTSIDE_ROOTS\].*allowed_roots"):
                iceberg_rows(**{part: location})
    assert not opened
    assert not asked


def test_escapes_in_the_locations_of_iceberg_are_no_way_out(
    iceberg_rows: Callable[..., list[int]], iceberg: Path, hr: Path
) -> None:
    """Iceberg's locations are paths: `%2e` is three characters."""
    with opened_in(hr.parent) as opened, pytest.raises(SourceChanged):
        iceberg_rows(data=f"{iceberg.as_uri()}/%2e%2e/hr/{hr.name}")
    assert not opened
