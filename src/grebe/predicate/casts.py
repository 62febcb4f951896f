"""The casts that Grebe evaluates: a white list of those that it does exactly as Spark.

In ANSI mode a value that does not fit makes Spark fail. Here such a row is marked as failed, and evaluation raises only if the
answer depends on it. Any cast not listed is refused as `Unsupported`.
"""

import numpy as np
import pyarrow as pa

from grebe.errors import Unsupported
from grebe.formats.zones import MICROS_PER_DAY, MICROS_PER_SECOND, zone
from grebe.predicate import number_casts, text_casts
from grebe.predicate.arrow_types import physical_type
from grebe.predicate.number_casts import Outcome
from grebe.predicate.tree import CastMode
from grebe.predicate.types import Type
from grebe.predicate.vector import Vector, filled, with_nulls_of

_MAX_DAYS = 2**63 // MICROS_PER_DAY - 1


def cast_values(values: pa.Array, source: Type, target: Type, mode: CastMode, time_zone: str) -> Vector:
    """Values in the physical form of `source`, cast to `target`."""
    if source == target:
        return Vector(values)
    if source.name == "void":
        return Vector(pa.nulls(len(values), physical_type(target)))
    outcome = _cast(values, source, target, mode, time_zone)
    if outcome is None:
        raise Unsupported(f"cast of {source} to {target} without Spark", detail="CAST")
    result, misfits = outcome
    return Vector(result, misfits if mode == "ansi" and misfits is not None and misfits.any() else None)


def _cast(values: pa.Array, source: Type, target: Type, mode: CastMode, time_zone: str) -> Outcome | None:
    legacy = mode == "legacy"
    if source.name == "string":
        return text_casts.from_text(values, target, legacy, time_zone) if target.is_scalar else None
    if target.name == "string":
        supported = source.is_scalar and not source.is_floating and source.name != "binary"
        return (text_casts.to_text(values, source, time_zone), None) if supported else None
    if source.is_datetime and target.is_datetime:
        return _between_datetimes(values, source, target, time_zone), None
    if source.name == "timestamp" and target.name == "bigint":
        return with_nulls_of(filled(values) // MICROS_PER_SECOND, values), None
    if source.name == "boolean" and target.is_numeric:
        return number_casts.boolean_to_number(values, target)
    if source.is_numeric and target.name == "boolean":
        return number_casts.number_to_boolean(values)
    return _between_numbers(values, source, target, legacy)


def _between_numbers(values: pa.Array, source: Type, target: Type, legacy: bool) -> Outcome | None:
    if source.is_integral and target.is_integral:
        return number_casts.integral_to_integral(values, target, legacy)
    if source.is_integral and target.is_decimal:
        return number_casts.integral_to_decimal(values, target)
    if source.is_integral and target.is_floating:
        return number_casts.integral_to_floating(values, target)
    if source.is_decimal and target.is_decimal:
        return number_casts.decimal_to_decimal(values, target)
    if source.is_decimal and target.is_integral:
        return number_casts.decimal_to_integral(values, target, legacy)
    if source.is_decimal and target.is_floating:
        return number_casts.decimal_to_floating(values, target)
    if source.is_floating and target.is_floating:
        return number_casts.floating_to_floating(values, target)
    if source.is_floating and target.is_integral:
        return number_casts.floating_to_integral(values, target, legacy)
    return None  # floating point to decimal goes through Java's Double.toString, which is not the shortest text on older Java


def _between_datetimes(values: pa.Array, source: Type, target: Type, time_zone: str) -> pa.Array:
    numbers = filled(values).astype(np.int64)
    if source.name == "date":
        if np.any(np.abs(numbers) > _MAX_DAYS):
            raise Unsupported(f"cast of a date beyond the range of {target}", detail="CAST")
        moments = numbers * MICROS_PER_DAY
        result = moments if target.name == "timestamp_ntz" else zone(time_zone, moments).start_of_day(numbers)
    elif target.name == "date":
        ntz = source.name == "timestamp_ntz"
        days = numbers // MICROS_PER_DAY if ntz else zone(time_zone, numbers).local_days(numbers)
        result = days.astype(np.int32)
    elif target.name == "timestamp":
        result = zone(time_zone, numbers).to_instant(numbers)
    else:
        result = zone(time_zone, numbers).to_local(numbers)
    return with_nulls_of(result, values)
