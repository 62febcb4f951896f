"""Functions applied to Arrow data, with exactly Spark's answers.

Where Spark raises by its own limits, or answers from the other end of time (the year of the first moment of all begins before that
moment), the value is refused as `Unsupported`: no one can mean such values.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from grebe.errors import Unsupported
from grebe.formats.zones import MICROS_PER_DAY, zone
from grebe.predicate.arrow_types import physical_type
from grebe.predicate.calendar_units import ANYWHERE_ALIKE, Numbers, first_days, first_moments, years_of
from grebe.predicate.functions import LINEAR, UNITS_PER_MICROS
from grebe.predicate.inverses import DAYS_AT_THE_START, fitting, steps_of
from grebe.predicate.tree import Call
from grebe.predicate.types import TIMESTAMP
from grebe.predicate.vector import Vector, filled, valid_rows, with_nulls_of, without


def call_values(call: Call, values: pa.Array) -> Vector:
    """Of the values of its term, in physical form."""
    if call.name == "left":
        return Vector(pc.utf8_slice_codeunits(values, 0, call.arguments[0]))
    if call.name == LINEAR:
        return _decimals(call, values) if call.type.is_decimal else _integers(call, values)
    numbers = filled(values).astype(np.int64)
    return Vector(with_nulls_of(_computed(call, numbers), values).cast(physical_type(call.type)))


def _computed(call: Call, numbers: Numbers) -> Numbers:
    unit = str(call.arguments[0]) if call.arguments else ""
    if call.name == "year":
        return years_of(numbers)
    if call.name == "trunc":
        _require_later(numbers, steps_of(call.type)[0] + DAYS_AT_THE_START, call)
        return first_days(unit, numbers)
    if call.name == "date_trunc":
        _require_later(numbers, steps_of(TIMESTAMP)[0] + DAYS_AT_THE_START * MICROS_PER_DAY, call)
        return _truncated(unit, numbers, call.time_zone)
    return numbers // UNITS_PER_MICROS[call.name]


def _truncated(unit: str, instants: Numbers, time_zone: str) -> Numbers:
    if unit in ANYWHERE_ALIKE:
        return first_moments(unit, instants)
    here = zone(time_zone, instants)
    local = here.to_local(instants)
    starts = first_moments(unit, local)
    if unit in ("MINUTE", "HOUR", "DAY"):
        # java.time keeps the offset of the moment where the clock shows the start twice.
        same = instants - (local - starts)
        return np.where(here.to_local(same) == starts, same, here.to_instant(starts))
    return here.start_of_day(starts // MICROS_PER_DAY)


def _require_later(numbers: Numbers, least: int, call: Call) -> None:
    if np.any(numbers < least):
        raise Unsupported(f"{call.text} at the very beginning of time without Spark", detail="OPAQUE_TERM")


def _integers(call: Call, values: pa.Array) -> Vector:
    """Numbers of 64 bits wrap around, and so do those that are cut from them: what fits is right, and the rest as in Java."""
    factor, plus = (_of_64_bits(argument) for argument in call.arguments)
    numbers = filled(values).astype(np.int64)
    low, high = fitting(call)
    outside = np.asarray((numbers < low) | (numbers > high))
    result = with_nulls_of((numbers * factor + plus).astype(physical_type(call.type).to_pandas_dtype()), values)
    failed = outside & valid_rows(values)
    return Vector(without(result, failed), failed) if call.mode == "ansi" and failed.any() else Vector(result)


def _of_64_bits(value: Any) -> np.int64:
    return np.int64((value + 2**63) % 2**64 - 2**63)


def _decimals(call: Call, values: pa.Array) -> Vector:
    """The type is wide enough for every value: `functions` takes no other."""
    factor, plus = call.arguments
    if factor == 1:
        result = pc.add(values, pa.scalar(plus))
    elif factor == -1:
        result = pc.subtract(pa.scalar(plus), values) if plus else pc.negate(values)
    else:
        result = pc.multiply(values, pa.scalar(factor))
    return Vector(result.cast(physical_type(call.type)))
