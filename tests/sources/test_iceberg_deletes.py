"""Rows deleted from Iceberg are read as pyiceberg reads them, and never more than there are."""

import io
import json
import struct
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile
from pyroaring import BitMap

from grebe.errors import UnreadableFile
from grebe.sources.iceberg import _positions
from grebe.sources.iceberg_deletes import positions_in_parquet, positions_in_puffin
from grebe.sources.protocol import Request
from grebe.store.memory import MemoryStore

A, B = "file:///lake/t/a.parquet", "file:///lake/t/b.parquet"
ROWS = 5_000_000_000


def vector(positions: list[int]) -> bytes:
    """A deletion vector as the format describes it."""
    keys = sorted({one >> 32 for one in positions})
    content = struct.pack("<IQ", 1681511377, len(keys))
    for key in keys:
        bitmap = BitMap([one & 0xFFFFFFFF for one in positions if one >> 32 == key])
        bitmap.run_optimize()
        content += struct.pack("<I", key) + bitmap.serialize()
    return sealed(content)


def sealed(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content + struct.pack(">I", zlib.crc32(content))


def puffin(*blobs: tuple[str, bytes], **described: object) -> bytes:
    data, known = b"PFA1", []
    for uri, blob in blobs:
        known.append(
            {
                "type": "deletion-vector-v1",
                "fields": [],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": len(data),
                "length": len(blob),
                "properties": {"referenced-data-file": uri, "cardinality": "1"},
                **described,
            }
        )
        data += blob
    footer = json.dumps({"blobs": known}).encode()
    return data + b"PFA1" + footer + struct.pack("<I4s4s", len(footer), bytes(4), b"PFA1")


def delete_file(paths: list[str], positions: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"file_path": paths, "pos": positions}), sink, row_group_size=3)
    return sink.getvalue()


@pytest.mark.parametrize(
    "positions", [[0], [3, 7, 70_000], list(range(1000, 9000)), [5, 2**32 + 1, 2**32 + 7]], ids=len
)
def test_deletion_vectors_are_read_as_pyiceberg_reads_them(positions: list[int]) -> None:
    data = puffin((A, vector(positions)), (B, vector([1, 2])))
    by_pyiceberg = deletion_vectors_from_puffin_file(PuffinFile(data))[0].to_vector().to_pylist()
    assert positions_in_puffin(data, A, ROWS).tolist() == by_pyiceberg == positions
    assert positions_in_puffin(data, B, 3).tolist() == [1, 2]
    assert positions_in_puffin(data, "file:///lake/t/c.parquet", 3).tolist() == []
    assert positions_in_puffin(puffin((A, vector([]))), A, ROWS).dtype == np.int64


def test_position_deletes_are_those_of_the_file() -> None:
    data = delete_file([A, B, A, B, A], [5, 1, 3, 2, 3])
    assert positions_in_parquet(data, A).tolist() == [5, 3, 3]
    assert positions_in_parquet(data, B).tolist() == [1, 2]
    assert positions_in_parquet(data, "file:///lake/t/c.parquet").dtype == np.int64


EVERYTHING = BitMap(range(2**32))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (puffin((A, vector([100]))), "rows that are not there"),
        (puffin((A, vector([2**32]))), "rows that are not there"),
        (puffin((A, vector([1, 2**32]))), "more bitmaps than there are rows"),
        (puffin((A, sealed(struct.pack("<IQI", 1681511377, 1, 0) + EVERYTHING.serialize()))), "not there"),
        (puffin((A, sealed(struct.pack("<IQ", 1681511377, 2**63)))), "more bitmaps than"),
        (puffin((A, vector([1])[:-1] + b"x")), "damaged"),
        (puffin((A, vector([1])), **{"compression-codec": "zstd"}), "compressed"),
        (puffin((A, vector([1])), length=10**9), "outside its file"),
        (puffin((A, b""))[:-1], "no Puffin file"),
        (b"PFA1PFA1", "not enough data"),
    ],
    ids=["row", "half", "count", "all", "many", "checksum", "codec", "length", "magic", "short"],
)
def test_a_forged_deletion_vector_is_an_unreadable_file_and_takes_no_memory(data: bytes, why: str) -> None:
    with pytest.raises(UnreadableFile, match=f"a.puffin, which keeps deleted rows, cannot be read .*{why}") as refused:
        kept_rows("a.puffin", FileFormat.PUFFIN, data)
    assert refused.value.code == "UNREADABLE_FILE_ICEBERG"


@pytest.mark.parametrize(
    "data",
    [
        delete_file([A], pa.array([-1], pa.int64())),
        delete_file([A], pa.array([None], pa.int64())),
        delete_file([A], pa.array(["x"])),
        delete_file([A], [1])[:-9],
        b"",
    ],
    ids=["negative", "null", "text", "cut", "empty"],
)
def test_a_forged_delete_file_is_an_unreadable_file(data: bytes) -> None:
    with pytest.raises(UnreadableFile, match=r"a.parquet, which keeps deleted rows"):
        kept_rows("a.parquet", FileFormat.PARQUET, data)


def kept_rows(name: str, format: FileFormat, data: bytes) -> object:
    store = MemoryStore("lake")
    store.put(name, data)
    kept = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES, file_path=f"memory://lake/{name}", file_format=format
    )
    return _positions(kept, A, 100, Request(("memory://lake",)), store)
