"""Rows deleted from a data file of Iceberg, out of the bytes that say so: position delete files in Parquet (version 2 of Iceberg)
and deletion vectors in Puffin files (version 3).

pyiceberg would read Puffin without limits: a blob of a few bytes makes it take all memory.
"""

import json
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from grebe.files import canonical_uri
from grebe.formats.parquet_file import parse_batches
from grebe.sources.lake import Numbers

_PATH, _POSITION = "file_path", "pos"
_MAGIC, _VECTOR_MAGIC = b"PFA1", 1681511377
_ENDING = struct.Struct("<i4s4s")
"""How a Puffin file ends: length of the footer's JSON, flags, magic."""
_COMPRESSED = 1
_VECTOR, _REFERENCED = "deletion-vector-v1", "referenced-data-file"
_HALF = 32
"""Bits of a position that a 32-bit bitmap holds; its key has the others."""


def positions_in_parquet(data: bytes, uri: str) -> Numbers:
    """Return the deleted rows of the data file at this URI. Raise what `untrusted.decoding` turns into an error of ours."""
    own: dict[str, bool] = {}
    found = [np.empty(0, np.int64)]
    for batch in parse_batches(data, [_PATH, _POSITION]):
        paths, positions = batch.column(_PATH).cast(pa.string()), batch.column(_POSITION)
        if positions.type != pa.int64() or positions.null_count:
            raise ValueError("a position is no number")
        for path in paths.unique().to_pylist():
            own.setdefault(path, canonical_uri(path) == uri)
        wanted = pa.array([path for path, is_own in own.items() if is_own], pa.string())
        found.append(positions.filter(pc.is_in(paths, value_set=wanted)).to_numpy())
    return _checked(np.concatenate(found))


def positions_in_puffin(data: bytes, uri: str, rows: int) -> Numbers:
    """Return the deleted rows of the data file at this URI, which has so many. Raise as `positions_in_parquet` does."""
    found = [np.empty(0, np.int64)]
    for blob in _blobs(data):
        if blob["type"] != _VECTOR or canonical_uri(blob["properties"][_REFERENCED]) != uri:
            continue
        if blob.get("compression-codec") is not None:
            raise ValueError("a deletion vector that is compressed")
        start, length = int(blob["offset"]), int(blob["length"])
        if start < 0 or length < 0 or start + length > len(data):
            raise ValueError("a blob lies outside its file")
        found += _bitmaps(data[start : start + length], rows)
    return _checked(np.concatenate(found))


def _checked(positions: npt.NDArray[np.int64]) -> Numbers:
    if len(positions) and positions.min() < 0:
        raise ValueError("a position is negative")
    return positions


def _blobs(data: bytes) -> list[dict[str, Any]]:
    length, flags, magic = _ENDING.unpack_from(data, len(data) - _ENDING.size)
    stop = len(data) - _ENDING.size
    if data[:4] != _MAGIC or magic != _MAGIC or not 0 <= length <= stop - len(_MAGIC):
        raise ValueError("it is no Puffin file")
    if flags[0] & _COMPRESSED:
        raise ValueError("a Puffin file with a compressed footer")
    blobs: list[dict[str, Any]] = json.loads(data[stop - length : stop])["blobs"]
    return blobs


def _bitmaps(blob: bytes, rows: int) -> Iterator[npt.NDArray[np.int64]]:
    """The positions of a vector: its length and a mark, bitmaps of 32 bits by their upper halves, a checksum."""
    from pyroaring import BitMap

    parse: Callable[[bytes], Any] = BitMap.deserialize
    length, mark = struct.unpack_from(">I", blob)[0], struct.unpack_from("<I", blob, 4)[0]
    (checksum,) = struct.unpack_from(">I", blob, 4 + length)
    content = memoryview(blob)[8 : 4 + length]
    if mark != _VECTOR_MAGIC or zlib.crc32(blob[4 : 4 + length]) != checksum:
        raise ValueError("a deletion vector is damaged")
    (count,) = struct.unpack_from("<Q", content)
    if count > (rows >> _HALF) + 1:
        raise ValueError("a deletion vector of more bitmaps than there are rows")
    place, last, left = 8, -1, rows
    for _ in range(count):
        (key,) = struct.unpack_from("<I", content, place)
        bitmap = parse(bytes(content[place + 4 :]))
        left -= len(bitmap)
        if key <= last or left < 0 or (len(bitmap) and key << _HALF | bitmap.max() >= rows):
            raise ValueError("a deletion vector names rows that are not there")
        place, last = place + 4 + len(bitmap.serialize()), key
        yield np.frombuffer(bitmap.to_array(), np.uint32).astype(np.int64) + (key << _HALF)
