"""Values written as text, read as Spark's CSV reader reads them (and its JSON reader the dates and times in strings).

A text that is no value of its column's type is NULL, as with Spark's PERMISSIVE mode. Where Spark's rules are looser
than can be told here (dates such as `2020-1`, digits of other scripts), the reader refuses with `Unsupported` instead
of guessing.
"""

import decimal
import re
from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from grebe.errors import Unsupported
from grebe.formats.java_floats import HEXADECIMAL, from_hexadecimal
from grebe.formats.local_time import instants
from grebe.formats.spark_types import TIMESTAMP, TIMESTAMP_NTZ

_WHOLE = r"^[+-]?[0-9]+$"
_SHORT_WHOLE = r"^[+-]?[0-9]{1,18}$"
_BLANK = r"[\x00-\x20]*"
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_DOUBLE = rf"^{_BLANK}({_NUMBER})[dDfF]?{_BLANK}$"
_INFINITE = rf"^{_BLANK}[+-]?Infinity{_BLANK}$"
_NOT_A_NUMBER = rf"^{_BLANK}[+-]?NaN{_BLANK}$"
_HEXADECIMAL = re.compile(rf"{_BLANK}([+-]?{HEXADECIMAL})[dDfF]?{_BLANK}")
_EASY_DECIMAL = r"^[+-]?[0-9]{1,30}(\.[0-9]{0,20})?$"
_DECIMAL = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE]([+-]?[0-9]+))?")
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?)?$"
_ZONED_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?(?:Z|[+-][0-9]{2}:[0-9]{2})$"
_FAR_ZONE = r"[+-](?:18:(?:0[1-9]|[1-5][0-9])|(?:19|[2-9][0-9]):[0-9]{2})$"
"""Java has no zone farther than 18 hours from UTC."""
_EXACT = decimal.Context(prec=1000, rounding=decimal.ROUND_HALF_UP, Emax=10**6, Emin=-(10**6))
_LEAST_POWER, _GREATEST_POWER = -(2**31) + 1, 2**31 - 1
"""Of ten in a decimal of Java."""
_MOST_DIGITS = 19
_LIMITS = {pa.int8(): 2**7, pa.int16(): 2**15, pa.int32(): 2**31, pa.int64(): 2**63}


def values_of(text: pa.Array, kind: pa.DataType, options: Mapping[str, str], zone: str | None, what: str) -> pa.Array:
    """The values of a column of text; NULL stays NULL. `what` names the column and the file for an error."""
    if pa.types.is_string(kind):
        return text.cast(kind)
    if pa.types.is_binary(kind):
        return text.cast(pa.large_binary()).cast(kind)
    if pa.types.is_boolean(kind):
        return _booleans(text)
    if pa.types.is_signed_integer(kind):
        return _integers(text, kind, what)
    if pa.types.is_floating(kind):
        return _floats(text, kind, options)
    if pa.types.is_decimal(kind):
        return _decimals(text, kind, what)
    if pa.types.is_date(kind):
        return _dates(text, what)
    if pa.types.is_timestamp(kind):
        return _timestamps(text, kind, zone or "UTC", what)
    raise Unsupported(f"{what}: text has no values of type {kind}", detail="TYPE")


def _booleans(text: pa.Array) -> pa.Array:
    low = pc.ascii_lower(text)
    return pc.case_when(pc.make_struct(pc.equal(low, "true"), pc.equal(low, "false")), True, False)


def _integers(text: pa.Array, kind: pa.DataType, what: str) -> pa.Array:
    text = _matching(text, _WHOLE, lambda odd: _refuse_foreign_digits(odd, what))
    short = pc.match_substring_regex(text, _SHORT_WHOLE)
    easy = pc.if_else(short, pc.replace_substring_regex(text, r"^\+", ""), None).cast(pa.int64())
    limit = _LIMITS[kind]
    if pc.any(pc.invert(short)).as_py():
        numbers = [None if value is None else _long(value) for value in pc.if_else(short, None, text).to_pylist()]
        long = pa.array([n if n is not None and -(2**63) <= n < 2**63 else None for n in numbers], pa.int64())
        easy = pc.coalesce(easy, long)
    fits = pc.and_(pc.greater_equal(easy, -limit), pc.less_equal(easy, limit - 1))
    return pc.if_else(fits, easy, None).cast(kind)


def _long(text: str) -> int | None:
    """Return the number, or None if it has more digits than any of 64 bits: Python refuses to read thousands of them."""
    digits = text.strip().lstrip("+-").lstrip("0")
    if len(digits) > _MOST_DIGITS:
        return None
    return -int(digits or "0") if "-" in text else int(digits or "0")


def _floats(text: pa.Array, kind: pa.DataType, options: Mapping[str, str]) -> pa.Array:
    special = {
        options.get("nanvalue", "NaN"): np.nan,
        options.get("negativeinf", "-Inf"): -np.inf,
        options.get("positiveinf", "Inf"): np.inf,
    }
    plain = pc.match_substring_regex(text, _DOUBLE)
    digits = pc.struct_field(pc.extract_regex(text, _DOUBLE.replace(f"({_NUMBER})", f"(?P<n>{_NUMBER})")), "n")
    result = pc.if_else(plain, digits, None).cast(kind)
    odd = pc.and_(pc.is_valid(text), pc.invert(pc.fill_null(plain, True)))
    if not pc.any(odd).as_py():
        return result
    chosen = [pc.equal(text, name) for name in special]
    chosen += [pc.match_substring_regex(text, _NOT_A_NUMBER)]
    negative = pc.match_substring(text, "-")
    infinite = pc.match_substring_regex(text, _INFINITE)
    chosen += [pc.and_(infinite, negative), infinite]
    values = [pa.scalar(value, kind) for value in (*special.values(), np.nan, -np.inf, np.inf)]
    found = pc.case_when(pc.make_struct(*chosen), *values)
    single = kind == pa.float32()
    hexadecimal = [_hexadecimal(value, single) for value in pc.if_else(odd, text, None).to_pylist()]
    return pc.coalesce(found, result, pa.array(hexadecimal, pa.float64()).cast(kind))


def _hexadecimal(text: str | None, single: bool) -> float | None:
    found = None if text is None else _HEXADECIMAL.fullmatch(text)
    return from_hexadecimal(found[1], single) if found else None


def _decimals(text: pa.Array, kind: pa.DataType, what: str) -> pa.Array:
    # Spark drops grouping commas wherever they stand.
    text = pc.replace_substring(text, ",", "")
    easy = pc.match_substring_regex(text, _EASY_DECIMAL)
    exact = pc.if_else(easy, text, None).cast(pa.decimal256(76, 20))
    rounded = pc.round(exact, kind.scale, "half_towards_infinity") if kind.scale < 20 else exact
    limit = pa.scalar(decimal.Decimal(10) ** (kind.precision - kind.scale), pa.decimal256(76, 20))
    result = pc.if_else(pc.less(pc.abs(rounded), limit), rounded, None).cast(kind)
    odd = pc.if_else(pc.fill_null(easy, True), None, text)
    if odd.null_count == len(odd):
        return result
    _refuse_foreign_digits(odd.drop_null(), what)
    return pc.coalesce(result, pa.array([None if v is None else _decimal(v, kind) for v in odd.to_pylist()], kind))


def _decimal(text: str, kind: pa.DataType) -> decimal.Decimal | None:
    found = _DECIMAL.fullmatch(text)
    if not found:
        return None
    power = _long(found[2] or "0")
    sign, digits, scale = decimal.Decimal(found[1]).as_tuple()
    assert isinstance(scale, int)
    if power is None or not all(_LEAST_POWER <= one <= _GREATEST_POWER for one in (power, scale + power)):
        return None
    largest = len(digits) + scale + power if any(digits) else 0
    if largest > 41:
        return None
    if largest < -60 or not any(digits):
        return decimal.Decimal(0)
    exact = decimal.Decimal((sign, digits, scale + power))
    value = exact.quantize(decimal.Decimal(1).scaleb(-kind.scale), context=_EXACT)
    return value if abs(value) < decimal.Decimal(10) ** (kind.precision - kind.scale) else None


def _dates(text: pa.Array, what: str) -> pa.Array:
    days = _matching(text, _DATE, lambda odd: _refuse_digits(odd, what))
    return _parsed(days, TIMESTAMP_NTZ).cast(pa.date32())


def _timestamps(text: pa.Array, kind: pa.DataType, zone: str, what: str) -> pa.Array:
    if kind.tz is None:
        # With a zone written behind it, it is no value of this type.
        zoned = pc.fill_null(pc.match_substring_regex(text, _ZONED_TIME), False)
        return _parsed(
            _matching(pc.if_else(zoned, None, text), _TIME, lambda odd: _refuse_digits(odd, what)), TIMESTAMP_NTZ
        )
    zoned = pc.fill_null(pc.match_substring_regex(text, _ZONED_TIME), False)
    local = _matching(pc.if_else(zoned, None, text), _TIME, lambda odd: _refuse_digits(odd, what))
    far = pc.match_substring_regex(text, _FAR_ZONE)
    written = _parsed(pc.if_else(pc.and_(zoned, pc.invert(far)), text, None), TIMESTAMP)
    return pc.coalesce(instants(_parsed(local, TIMESTAMP_NTZ), zone), written)


def _parsed(text: pa.Array, kind: pa.DataType) -> pa.Array:
    """ISO text of the right form; what is no day of the calendar or time of the clock is NULL."""
    try:
        return text.cast(kind)
    except pa.ArrowInvalid:
        pass  # Arrow does not say which; there are few, so they are found one by one.
    distinct = text.dictionary_encode()
    values = pa.array([_one_parsed(value, kind) for value in distinct.dictionary.to_pylist()], kind)
    return values.take(distinct.indices)


def _one_parsed(text: str, kind: pa.DataType) -> int | None:
    try:
        return int(pa.scalar(text).cast(kind).value)  # Python has no year 0
    except pa.ArrowInvalid:
        return None


def _matching(text: pa.Array, pattern: str, check: Callable[[pa.Array], None]) -> pa.Array:
    """Texts of this form; others become NULL, if `check` lets them."""
    matches = pc.fill_null(pc.match_substring_regex(text, pattern), True)
    if not pc.all(matches, min_count=0).as_py():
        check(text.filter(pc.invert(matches)))
    return pc.if_else(matches, text, None)


def _refuse_foreign_digits(odd: pa.Array, what: str) -> None:
    if not pc.all(pc.string_is_ascii(odd), min_count=0).as_py():
        raise _undecided(what)


def _refuse_digits(odd: pa.Array, what: str) -> None:
    if pc.any(pc.or_(pc.match_substring_regex(odd, "[0-9]"), pc.invert(pc.string_is_ascii(odd))), min_count=0).as_py():
        raise _undecided(what)


def _undecided(what: str) -> Unsupported:
    return Unsupported(
        f"{what} holds text that only Spark can tell to be a value or not; read it through Spark, or as a string",
        detail="TEXT_VALUE",
    )
