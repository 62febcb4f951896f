"""Local times and the instants they stand for, by Java's rule: in an overlap the earlier instant, in a gap the offset
before it."""

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa
import pyarrow.compute as pc

from grebe.errors import InvalidConfig
from grebe.formats.spark_types import TIMESTAMP, TIMESTAMP_NTZ

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instants(local: pa.TimestampArray, zone: str) -> pa.TimestampArray:
    """Local times of a zone (microseconds) as instants."""
    zone_of(zone)
    local = local.cast(TIMESTAMP_NTZ)
    if zone == "UTC":
        return local.cast(TIMESTAMP)
    try:
        return pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="raise").cast(TIMESTAMP)
    except pa.ArrowInvalid:
        # Rare: a time that the clock skipped. Only Python's rule is Java's there.
        return pa.array([None if value is None else instant(value, zone) for value in local.to_pylist()], TIMESTAMP)


def instant(local: datetime, zone: str) -> datetime:
    """One local time as an instant."""
    aware = local.replace(tzinfo=zone_of(zone), fold=0)
    return _EPOCH + (local.replace(tzinfo=UTC) - _EPOCH) - (aware.utcoffset() or timedelta())


def zone_of(zone: str) -> tzinfo:
    if zone in ("UTC", "Z", "GMT"):
        return UTC
    if zone[:1] in "+-" and len(zone) == 6:
        sign = -1 if zone[0] == "-" else 1
        return timezone(sign * timedelta(hours=int(zone[1:3]), minutes=int(zone[4:])))
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise InvalidConfig(
            f"there is no time zone {zone!r}; use a name such as Europe/Berlin, or UTC", detail="TIME_ZONE"
        ) from error
