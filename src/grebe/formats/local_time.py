"""Local times and the instants they stand for, by Java's rule: in an overlap the earlier instant, in a gap the offset
before it."""

from datetime import UTC, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa

from grebe.errors import InvalidConfig
from grebe.formats.spark_types import TIMESTAMP, TIMESTAMP_NTZ
from grebe.formats.zones import zone as rules_of


def instants(local: pa.TimestampArray, zone: str) -> pa.TimestampArray:
    """Return the instants of local times of a zone (microseconds). Arrow's own conversion knows no rules beyond 2037."""
    zone_of(zone)
    local = local.cast(TIMESTAMP_NTZ)
    if zone == "UTC":
        return local.cast(TIMESTAMP)
    missing = np.asarray(local.is_null())
    micros = local.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return pa.array(rules_of(zone, micros).to_instant(micros), pa.int64(), mask=missing).cast(TIMESTAMP)


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
