"""Local times and the instants they stand for, by Java's rule: in an overlap the earlier instant, in a gap the offset
before it."""

import numpy as np
import pyarrow as pa

from grebe.errors import InvalidConfig, InvalidPredicate
from grebe.formats.spark_types import TIMESTAMP, TIMESTAMP_NTZ
from grebe.formats.zones import zone as rules_of


def instants(local: pa.TimestampArray, zone: str) -> pa.TimestampArray:
    """Return the instants of local times of a zone (microseconds). Arrow's own conversion knows no rules beyond 2037."""
    local = local.cast(TIMESTAMP_NTZ)
    if zone == "UTC":
        return local.cast(TIMESTAMP)
    missing = np.asarray(local.is_null())
    micros = local.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    try:
        rules = rules_of(zone, micros)
    except InvalidPredicate as error:
        raise InvalidConfig(
            f"there is no time zone {zone!r}; use a name such as Europe/Berlin, or UTC", detail="TIME_ZONE"
        ) from error
    return pa.array(rules.to_instant(micros), pa.int64(), mask=missing).cast(TIMESTAMP)
