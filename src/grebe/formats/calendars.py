"""Days and moments so long ago that it matters which calendar they were written in.

Old writers counted by the Julian calendar before 15 October 1582, and Spark rebases what they wrote; Grebe's readers do not.
Values that no calendar and no change of clocks can touch are the same in all of them.
"""

from numbers import Integral

import pyarrow as pa
import pyarrow.compute as pc

from grebe.errors import Unsupported

_GREGORIAN_DAY = -141_427
"""15 October 1582."""
_SETTLED_MICROS = -2_208_988_800_000_000
"""1900: from here on Spark rebases no moment, whatever the zone."""
_SETTLED = {"date": _GREGORIAN_DAY, "timestamp": _SETTLED_MICROS}
_VERSION = b"org.apache.spark.version"
_OLD = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_FIRST_GREGORIAN = (3, 1)


def is_old(metadata: dict[bytes, bytes] | None) -> bool:
    """Whether a Parquet file with this metadata says that it counts by the old calendar, or comes from a Spark that did."""
    known = metadata or {}
    if any(key in known for key in _OLD):
        return True
    parts = known.get(_VERSION, b"").decode(errors="replace").split(".")[:2]
    return len(parts) == 2 and all(part.isdigit() for part in parts) and tuple(map(int, parts)) < _FIRST_GREGORIAN


def may_be_rebased(type: str, least: object) -> bool:
    """Tell whether a column of this type, whose least value is so many days or microseconds, holds a value that Spark rebases or
    refuses to read, as the file and the session say."""
    return type in _SETTLED and isinstance(least, Integral) and int(least) < _SETTLED[type]


def is_ancient(values: pa.Array | pa.ChunkedArray) -> bool:
    """Whether a column holds a day or a moment that calendars do not agree about."""
    kind = values.type
    if pa.types.is_date32(kind):
        least = pc.min(values).value
        return least is not None and least < _GREGORIAN_DAY
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        least = pc.min(values).value
        return least is not None and least < _SETTLED_MICROS
    if pa.types.is_struct(kind):
        return any(is_ancient(pc.struct_field(values, [place])) for place in range(kind.num_fields))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return is_ancient(pc.list_flatten(values))
    return False


def has_ancient(records: pa.RecordBatch | pa.Table) -> bool:
    return any(is_ancient(column) for column in records.columns)


def refused(uri: str) -> Unsupported:
    return Unsupported(
        f"{uri} holds dates or times of long ago that may be counted by the old calendar, which only Spark reads here",
        detail="OLD_CALENDAR",
    )
