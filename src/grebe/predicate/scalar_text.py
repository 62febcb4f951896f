"""How Spark reads one value from a string, for every type that a string may be cast to.

Each function takes the text and returns the value in its physical form (days, microseconds, …), or None where Spark finds the text
malformed. Only odd strings come here one by one: `text_casts` reads the usual shapes by whole columns.
"""

import math
import re
from datetime import date
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from fractions import Fraction

import numpy as np

from grebe.errors import InvalidPredicate, Unsupported
from grebe.formats.java_floats import nearest_single
from grebe.formats.zones import MICROS_PER_SECOND, zone
from grebe.predicate.types import MAX_PRECISION, Type, integral_range

# What Spark trims around numbers, dates and booleans: white space and control characters, of one byte.
BLANKS = "".join(map(chr, range(0x21))) + "\x7f"
# What Java's String.trim removes around floating point numbers and decimals.
_JAVA_BLANKS = BLANKS[:-1]

_TRUE = ("t", "true", "y", "yes", "1")
_FALSE = ("f", "false", "n", "no", "0")
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_TRUNCATED = re.compile(r"([+-]?\d*)\.\d*", re.ASCII)
_FLOATING = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?[fd]?", re.ASCII | re.IGNORECASE)
_HEXADECIMAL = re.compile(r"[+-]?0x[0-9a-f]*\.?[0-9a-f]*p[+-]?\d+[fd]?", re.ASCII | re.IGNORECASE)
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")  # digits of any script, as Java's BigDecimal
_INFINITE = {sign + word: float(sign + "inf") for sign in ("", "+", "-") for word in ("inf", "infinity")}
_DATE = re.compile(r"([+-]?)(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.ASCII | re.DOTALL)
_TIMESTAMP = re.compile(
    r"([+-]?)(\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?(\D.*)?)?)?)?)?)?",
    re.ASCII | re.DOTALL,
)
_TIME_OF_TODAY = re.compile(r"T\d{1,2}(?::|$)|\d{1,2}:", re.ASCII)
_DAYS_BEFORE_1970 = date(1970, 1, 1).toordinal()
_EXACT = Context(prec=2 * MAX_PRECISION + 2, rounding=ROUND_HALF_UP)
# Words that Spark replaces by a date or time of its own where it casts a constant.
SPECIAL_WORDS = ("epoch", "now", "today", "tomorrow", "yesterday")


def to_boolean(text: str) -> bool | None:
    word = text.strip(BLANKS).lower()
    return True if word in _TRUE else False if word in _FALSE else None


def to_integral(text: str, kind: Type, truncate: bool) -> int | None:
    """`truncate`: outside ANSI mode digits after a point are read and dropped."""
    body = text.strip(BLANKS)
    if truncate and (parts := _TRUNCATED.fullmatch(body)):
        body = parts[1] if parts[1] not in ("", "+", "-") else "0"
    if not _INTEGER.fullmatch(body) or len(body.lstrip("+-").lstrip("0")) > 19:
        return None
    low, high = integral_range(kind)
    return value if low <= (value := int(body)) <= high else None


def to_double(text: str) -> float | None:
    body = text.strip(_JAVA_BLANKS)
    if _FLOATING.fullmatch(body):
        return float(body.rstrip("fFdD"))
    if body in ("NaN", "+NaN", "-NaN") or body.lower() == "nan":
        return math.nan
    if _HEXADECIMAL.fullmatch(body):
        raise Unsupported("cast of a string that holds a hexadecimal number to a floating point number", detail="CAST")
    return _INFINITE.get(body.lower())


def to_float(text: str) -> float | None:
    value = to_double(text)
    if not value or not math.isfinite(value):
        return value
    return nearest_single(Fraction(Decimal(text.strip(_JAVA_BLANKS).rstrip("fFdD"))))


def to_decimal(text: str, kind: Type) -> Decimal | None:
    body = text.strip(_JAVA_BLANKS)
    if not _DECIMAL.fullmatch(body):
        return None
    try:
        value = Decimal(body)
        if value.adjusted() >= MAX_PRECISION:
            if not value:
                raise Unsupported(
                    "cast of a zero with an exponent above 37 to decimal: Spark's versions differ", detail="CAST"
                )
            return None
        rounded = value.quantize(Decimal(1).scaleb(-kind.scale), context=_EXACT)
    except InvalidOperation:
        return None
    return rounded if rounded.copy_abs() < Decimal(10) ** (kind.precision - kind.scale) else None


def to_date(text: str) -> int | None:
    parts = _DATE.fullmatch(text.strip(BLANKS))
    if not parts:
        return None
    sign, year, month, day = parts.groups()
    found = days(-int(year) if sign == "-" else int(year), int(month or 1), int(day or 1))
    return found if found is not None and -(2**31) <= found < 2**31 else None


def is_time_of_today(text: str) -> bool:
    """Whether Spark would put the current date before this text to make a timestamp of it."""
    return _TIME_OF_TODAY.match(text.strip(BLANKS)) is not None


def to_timestamp(text: str, time_zone: str) -> int | None:
    """Microseconds since 1970 of the instant. A zone in the text wins over `time_zone`."""
    parsed = _local_and_zone(text)
    if parsed is None:
        return None
    local, named = parsed
    try:
        clock = np.array([local])
        offset = int((clock - zone(named or time_zone, clock).to_instant(clock))[0])
    except InvalidPredicate:
        if not named:
            raise
        return None
    return local - offset if -(2**63) <= local - offset < 2**63 else None


def to_timestamp_ntz(text: str) -> int | None:
    """Microseconds since 1970 on the wall clock. A zone in the text is checked and ignored, as Spark does."""
    parsed = _local_and_zone(text)
    if parsed is None:
        return None
    local, named = parsed
    return None if named and not _is_zone(named) else local


def names_zone(text: str) -> bool:
    """Whether a well-formed timestamp says its own time zone."""
    parsed = _local_and_zone(text)
    return parsed is not None and parsed[1] != ""


def _local_and_zone(text: str) -> tuple[int, str] | None:
    parts = _TIMESTAMP.fullmatch(text.strip(BLANKS))
    if not parts:
        return None
    sign, year, month, day, hour, minute, second, fraction, named = parts.groups()
    found = days(-int(year) if sign == "-" else int(year), int(month or 1), int(day or 1))
    hours, minutes, seconds = int(hour or 0), int(minute or 0), int(second or 0)
    if found is None or hours > 23 or minutes > 59 or seconds > 59:
        return None
    micros = int((fraction or "")[:6].ljust(6, "0"))
    local = ((found * 24 + hours) * 60 + minutes) * 60 + seconds
    total = local * MICROS_PER_SECOND + micros
    return (total, (named or "").strip(_JAVA_BLANKS)) if -(2**63) <= total < 2**63 else None


def _is_zone(name: str) -> bool:
    try:
        zone(name)
    except InvalidPredicate:
        return False
    return True


def days(year: int, month: int, day: int) -> int | None:
    """Days since 1970 in the proleptic Gregorian calendar, for any year; None if there is no such day."""
    cycles, year_in_cycle = divmod(year, 400)
    try:
        ordinal = date(year_in_cycle + 400, month, day).toordinal()
    except ValueError:
        return None
    return ordinal + (cycles - 1) * 146_097 - _DAYS_BEFORE_1970
