"""Years, quarters, months, weeks and shorter units: where the one begins that a day or a moment lies in, and where the next does.

Days and microseconds count from 1970 in the proleptic Gregorian calendar, without any limit: Python's own dates end in 9999.
"""

from typing import Any, TypeAlias

import numpy as np

from grebe.formats.zones import MICROS_PER_DAY, MICROS_PER_SECOND

Numbers: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]

_DAYS_PER_CYCLE = 146_097  # 400 years
_MONTHS_PER_CYCLE = 4_800
_MONDAY = 4  # 1970 began with a Thursday
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_MICROS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": MICROS_PER_SECOND,
    "MINUTE": 60 * MICROS_PER_SECOND,
    "HOUR": 3_600 * MICROS_PER_SECOND,
    "DAY": MICROS_PER_DAY,
}
DATE_UNITS = frozenset({"WEEK", *_MONTHS})
MOMENT_UNITS = frozenset({*DATE_UNITS, *_MICROS})
ANYWHERE_ALIKE = frozenset({"MICROSECOND", "MILLISECOND", "SECOND"})
"""Every time zone is whole seconds away from every other, so these begin everywhere at once."""
_NAMES = {"MON": "MONTH", "MM": "MONTH", "YYYY": "YEAR", "YY": "YEAR", "DD": "DAY"}


def unit_named(text: str) -> str:
    """A unit by one of the names that Spark knows it by; other text as it is."""
    name = text.upper()
    return _NAMES.get(name, name)


def year_of(day: int) -> int:
    return 1970 + _month_of(day) // 12


def first_day_of_year(year: int) -> int:
    return _first_day((year - 1970) * 12)


def day_bounds(unit: str, day: int) -> tuple[int, int]:
    """The first day of the unit that a day lies in, and that of the next."""
    if unit == "WEEK":
        start = (day - _MONDAY) // 7 * 7 + _MONDAY
        return start, start + 7
    months = _MONTHS[unit]
    start = _month_of(day) // months * months
    return _first_day(start), _first_day(start + months)


def moment_bounds(unit: str, moment: int) -> tuple[int, int]:
    """As `day_bounds`, of what a clock shows."""
    if unit in _MICROS:
        start = moment // _MICROS[unit] * _MICROS[unit]
        return start, start + _MICROS[unit]
    first, after = day_bounds(unit, moment // MICROS_PER_DAY)
    return first * MICROS_PER_DAY, after * MICROS_PER_DAY


def years_of(days: Numbers) -> Numbers:
    years: Numbers = days.astype("M8[D]").astype("M8[Y]").astype(np.int64) + 1970
    return years


def first_days(unit: str, days: Numbers) -> Numbers:
    """Of each day the first of its unit."""
    if unit == "WEEK":
        return (days - _MONDAY) // 7 * 7 + _MONDAY
    months: Any = days.astype("M8[D]").astype("M8[M]").astype(np.int64)
    starts: Numbers = (months // _MONTHS[unit] * _MONTHS[unit]).astype("M8[M]").astype("M8[D]").astype(np.int64)
    return starts


def first_moments(unit: str, moments: Numbers) -> Numbers:
    """Of each moment the first of its unit, on the same clock."""
    if unit in _MICROS:
        return moments // _MICROS[unit] * _MICROS[unit]
    return first_days(unit, moments // MICROS_PER_DAY) * MICROS_PER_DAY


def _month_of(day: int) -> int:
    """Months since 1970. numpy knows the calendar, and a cycle of it is the same as any other."""
    cycles, within = divmod(day, _DAYS_PER_CYCLE)
    return int(np.datetime64(within, "D").astype("M8[M]").astype(np.int64)) + cycles * _MONTHS_PER_CYCLE


def _first_day(month: int) -> int:
    cycles, within = divmod(month, _MONTHS_PER_CYCLE)
    return int(np.datetime64(within, "M").astype("M8[D]").astype(np.int64)) + cycles * _DAYS_PER_CYCLE
