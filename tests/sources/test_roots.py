"""Logs of lake formats that name files outside of their table: nothing there is read unless a setting allows it."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grebe
from grebe.errors import Unsupported
from grebe.sources.lake import LakeFiles
from grebe.sources.roots import is_allowed

ROWS = pa.table({"id": pa.array(range(10), pa.int64()), "name": [f"n{i}" for i in range(10)]})
SECRET = pa.table({"id": pa.array([4711], pa.int64()), "name": ["a secret"]})


@pytest.fixture
def hr(tmp_path: Path) -> Path:
    """A file of somebody else's."""
    place = tmp_path / "hr" / "salaries.parquet"
    place.parent.mkdir()
    pq.write_table(SECRET, place)
    return place


@pytest.fixture
def heard() -> Iterator[tuple[str, list[str]]]:
    """A host that only the reader can reach: its URL, and what was asked of it."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        do_HEAD = do_GET

        def log_message(self, *anything: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    thread.join()
    server.server_close()


def _delta(folder: Path) -> Path:
    from deltalake import write_deltalake

    write_deltalake(str(folder), ROWS)
    return folder


def _add(table: Path, path: str, size: int) -> None:
    """A commit of Delta's log that adds a file by any path."""
    action = {"path": path, "partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": True}
    (table / "_delta_log" / f"{1:020d}.json").write_text(json.dumps({"add": action}) + "\n")


def test_a_delta_log_that_names_a_file_elsewhere_on_the_disk_is_refused(tmp_path: Path, hr: Path) -> None:
    table = _delta(tmp_path / "t")
    for path in (
        hr.as_uri(),
        str(hr),
        "../hr/salaries.parquet",
        "x/../../hr/salaries.parquet",
        "%2e%2e/hr/salaries.parquet",
    ):
        _add(table, path, hr.stat().st_size)
        with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_OUTSIDE_ROOTS\].*allowed_roots"):
            grebe.open(str(table), format="delta")


def test_a_delta_log_that_names_a_host_asks_nothing_of_it(tmp_path: Path, heard: tuple[str, list[str]]) -> None:
    url, asked = heard
    table = _delta(tmp_path / "t")
    _add(table, f"{url}/latest/meta-data/part.parquet", 1000)
    with pytest.raises(Unsupported, match="allowed_roots"):
        grebe.open(str(table), format="delta")
    assert not asked


def test_files_below_an_allowed_root_are_read(tmp_path: Path, hr: Path) -> None:
    table = _delta(tmp_path / "t")
    _add(table, hr.as_uri(), hr.stat().st_size)
    config = grebe.Config(allowed_roots=(str(hr.parent),))
    rows = grebe.open(str(table), format="delta", config=config).scan("id = 4711")
    assert rows.to_pylist() == SECRET.to_pylist()


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


@pytest.mark.parametrize(
    ("uri", "table", "roots", "allowed"),
    [
        ("s3://lake/t/x", "s3://lake/t", (), True),
        ("s3://lake/data/x", "s3://lake/t", (), True),
        ("s3://other/x", "s3://lake/t", (), False),
        ("s3://other/x", "s3://lake/t", ("s3://other",), True),
        ("s3://lakes/x", "s3://lake/t", (), False),
        ("hdfs://nn/data/x", "hdfs://nn/t", (), True),
        ("hdfs://other/data/x", "hdfs://nn/t", (), False),
        ("file:///data/x", "file:///t", (), False),
        ("file:///t2/x", "file:///t", (), False),
        ("file:///t/x", "file:///t", (), True),
        ("file:///etc/passwd", "s3://lake/t", (), False),
        ("file:///data/x", "s3://lake/t", ("file:///data",), True),
        ("http://host/x", "http://host/t", (), False),
        ("http://host/t/x", "http://host/t", (), True),
    ],
)
def test_a_table_owns_its_folder_and_its_bucket(uri: str, table: str, roots: tuple[str, ...], allowed: bool) -> None:
    assert is_allowed(uri, table, roots) is allowed


def test_a_table_that_is_opened_by_a_link_to_its_folder_is_itself(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert is_allowed(f"file://{tmp_path}/real/x", f"file://{tmp_path}/link")


def test_paths_that_lead_back_into_the_table_are_one_path() -> None:
    made = LakeFiles.build("s3://lake/t", ["s3://lake/t/a/../b/./x", "s3://lake/t/.hidden/y"], [1, 1], [0, 0])
    assert made.list.paths().to_pylist() == [".hidden/y", "b/x"]
