"""Spark's casts from and to strings, by whole columns.

Strings of the usual shape are read by Arrow. The rest, which is rare, goes through `scalar_text` once for each distinct string:
Spark's formats are too irregular for anything else to be exact.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from grebe.errors import Unsupported
from grebe.formats.zones import MICROS_PER_DAY, zone
from grebe.predicate import scalar_text
from grebe.predicate.arrow_types import physical_type
from grebe.predicate.number_casts import Outcome, decimal_to_decimal, integral_to_integral
from grebe.predicate.tree import Value
from grebe.predicate.types import DOUBLE, Type
from grebe.predicate.vector import as_rows, filled, valid_rows, with_nulls_of, without

_USUAL_INTEGER = "^-?[0-9]{1,18}$"
_USUAL_NUMBER = r"^-?[0-9]{1,18}(\.[0-9]{1,18})?$"
_USUAL_DATE = "^[12][0-9]{3}-[01][0-9]-[0-3][0-9]$"
_USUAL_TIMESTAMP = r"^[12][0-9]{3}-[01][0-9]-[0-3][0-9][ T][0-2][0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?$"
_YEAR_ONE = -719_162 * MICROS_PER_DAY
_YEAR_TEN_THOUSAND = 2_932_897 * MICROS_PER_DAY


def from_text(values: pa.Array, target: Type, truncate: bool, time_zone: str) -> Outcome:
    """`truncate`: whether '1.5' is the integer 1, as outside ANSI mode."""
    if target.name == "binary":
        return values.cast(pa.large_binary()), None
    if target.is_integral:
        return _read(values, target, _USUAL_INTEGER, _integers, lambda t: scalar_text.to_integral(t, target, truncate))
    if target.is_floating:
        slow = scalar_text.to_double if target == DOUBLE else scalar_text.to_float
        return _read(values, target, _USUAL_NUMBER, lambda usual, kind: (usual.cast(physical_type(kind)), None), slow)
    if target.is_decimal:
        return _read(values, target, _USUAL_NUMBER, _decimals, lambda t: scalar_text.to_decimal(t, target))
    if target.name == "date":
        return _read(values, target, _USUAL_DATE, _dates, scalar_text.to_date)
    if target.name == "timestamp":
        return _read(
            values, target, _USUAL_TIMESTAMP, lambda u, _: _timestamps(u, time_zone), lambda t: _timestamp(t, time_zone)
        )
    if target.name == "timestamp_ntz":
        return _read(values, target, _USUAL_TIMESTAMP, lambda u, _: _timestamps(u, "UTC"), scalar_text.to_timestamp_ntz)
    return _read(values, target, None, None, scalar_text.to_boolean)


def _read(
    values: pa.Array,
    target: Type,
    usual_shape: str | None,
    fast: Callable[[pa.Array, Type], Outcome] | None,
    slow: Callable[[str], Value],
) -> Outcome:
    odd = valid_rows(values)
    result, malformed = pa.nulls(len(values), physical_type(target)), np.zeros(len(values), np.bool_)
    if usual_shape and fast:
        usual = as_rows(pc.match_substring_regex(values, usual_shape))
        try:
            result, outside = fast(without(values, ~usual), target)
        except pa.ArrowInvalid:  # one of them only looks usual, such as the 31st of February
            pass
        else:
            malformed = malformed if outside is None else outside
            odd &= ~usual
    if odd.any():
        read = _distinct(without(values, ~odd), target, slow)
        malformed = malformed | (odd & ~valid_rows(read))
        result = pc.if_else(pa.array(odd), read, result)
    return result, malformed


def _distinct(values: pa.Array, target: Type, slow: Callable[[str], Value]) -> pa.Array:
    encoded = values.dictionary_encode()
    read = pa.array([slow(text) for text in encoded.dictionary.to_pylist()], physical_type(target))
    return read.take(encoded.indices)


def _integers(usual: pa.Array, target: Type) -> Outcome:
    return integral_to_integral(usual.cast(pa.int64()), target, wrap=False)


def _decimals(usual: pa.Array, target: Type) -> Outcome:
    return decimal_to_decimal(usual.cast(pa.decimal128(36, 18)), target)


def _dates(usual: pa.Array, _: Type) -> Outcome:
    return usual.cast(pa.date32()).view(pa.int32()), None


def _timestamps(usual: pa.Array, time_zone: str) -> Outcome:
    local = usual.cast(pa.timestamp("us")).view(pa.int64())
    if time_zone == "UTC":
        return local, None
    clock = filled(local).astype(np.int64)
    return with_nulls_of(zone(time_zone, clock).to_instant(clock), local), None


def _timestamp(text: str, time_zone: str) -> int | None:
    if scalar_text.is_time_of_today(text):
        raise Unsupported(
            "cast of a string that holds only a time of day to timestamp: Spark adds the current date", detail="CAST"
        )
    return scalar_text.to_timestamp(text, time_zone)


def to_text(values: pa.Array, source: Type, time_zone: str) -> pa.Array:
    if source.is_integral or source.name == "boolean":
        return values.cast(pa.large_string())
    if source.is_decimal:
        # Small fractions are written with an exponent outside ANSI mode and without one inside it; up to six places both agree.
        if source.scale > 6:
            raise Unsupported(f"cast of {source} to string: only up to six decimal places", detail="CAST")
        return values.cast(pa.string()).cast(pa.large_string())
    if source.name == "date":
        _require_four_digit_years(filled(values).astype(np.int64) * MICROS_PER_DAY, source)
        return values.view(pa.date32()).cast(pa.string()).cast(pa.large_string())
    clock = filled(values).astype(np.int64)
    if source.name == "timestamp":
        clock = zone(time_zone, clock).to_local(clock)
    _require_four_digit_years(clock, source)
    full = pc.strftime(with_nulls_of(clock, values).view(pa.timestamp("us")), format="%Y-%m-%d %H:%M:%S")
    return pc.replace_substring_regex(full, r"\.?0*$", "").cast(pa.large_string())


def _require_four_digit_years(clock: np.ndarray[tuple[int], np.dtype[np.int64]], source: Type) -> None:
    if len(clock) and (clock.min() < _YEAR_ONE or clock.max() >= _YEAR_TEN_THOUSAND):
        raise Unsupported(f"cast of a {source} outside the years 1 to 9999 to string", detail="CAST")
