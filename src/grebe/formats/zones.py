"""Time zones over whole arrays of times, by the rules of java.time.

Arrow's own conversion differs from Java's in gaps (a local time that a clock change skips) and does not know the rules of the far
future, so the offsets come from `zoneinfo` and are applied with numpy. All times are microseconds since 1970.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TypeAlias
from zoneinfo import ZoneInfo

import numpy as np

from grebe.errors import InvalidPredicate

Micros: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]

MICROS_PER_SECOND = 1_000_000
MICROS_PER_DAY = 86_400 * MICROS_PER_SECOND

# No zone has changed its offset twice within 6.9 days, so looking every 6 days misses no change.
_STEP = timedelta(days=6)
_FIRST_CHANGES = datetime(1800, 1, 1, tzinfo=UTC)  # before this every zone keeps its first offset
_LAST_EXCEPTION = datetime(2100, 1, 1, tzinfo=UTC)  # after this every zone follows a yearly rule
_CALENDAR_CYCLE = 146_097 * MICROS_PER_DAY  # 400 years, after which weekdays and so the rules repeat
_FAR_FUTURE = int(_LAST_EXCEPTION.timestamp()) * MICROS_PER_SECOND
_OFFSET = re.compile(
    r"(?:UTC|GMT|UT)?([+-])(?:(\d{1,2})|(\d\d)(\d\d)(\d\d)?|(\d{1,2}):(\d\d)(?::(\d\d))?|(\d{1,2}):(\d))", re.ASCII
)
_SHORT_NAMES = {  # those of java.time.ZoneId.SHORT_IDS
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "EST": "-05:00",
    "HST": "-10:00",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "MST": "-07:00",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}

_NAMES_OF_UTC = frozenset({"UCT", "Universal", "Zulu", "Greenwich", "GMT0"})
GREATEST_OFFSET = 18 * 3_600 * MICROS_PER_SECOND
"""No zone of java.time is farther from UTC, whatever its rules and whoever's version of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Zone:
    """The offsets of one zone: `offsets[i]` holds from `changes[i - 1]` until `changes[i]`."""

    changes: Micros
    offsets: Micros

    def to_local(self, instants: Micros) -> Micros:
        """What a clock on the wall shows, as microseconds since 1970 on that clock."""
        return instants + self.offsets_at(instants)

    def local_days(self, instants: Micros) -> Micros:
        """The days that a calendar on the wall shows, up to the ends of time, where clocks would overflow."""
        days = instants // MICROS_PER_DAY
        return days + (instants - days * MICROS_PER_DAY + self.offsets_at(instants)) // MICROS_PER_DAY

    def offsets_at(self, instants: Micros) -> Micros:
        """How far clocks are ahead of UTC."""
        return self.offsets[np.searchsorted(self.changes, self._wrapped(instants), side="right")]

    def to_instant(self, local: Micros) -> Micros:
        """The instant at which the clock shows this. Shown twice: the first. Skipped: as if the clock had not changed yet."""
        return local - self.offsets[self._change_after(self._wrapped(local))]

    def start_of_day(self, days: Micros) -> Micros:
        """The first instant of each day, which is not midnight where a clock change skips it."""
        local = days * MICROS_PER_DAY
        here = self._wrapped(local)
        index = self._change_after(here)
        instant = local - self.offsets[index]
        if not len(self.changes):
            return instant
        change = self.changes[np.minimum(index, len(self.changes) - 1)]
        skipped = (index < len(self.changes)) & (here - self.offsets[index] >= change)
        skipped &= self.offsets[np.minimum(index + 1, len(self.changes))] > self.offsets[index]
        return np.where(skipped, change + (local - here), instant)

    def _change_after(self, local: Micros) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        # In a gap and in an overlap java.time takes the offset before the change, so the new offset counts from the later of
        # the two clock readings at the change.
        boundaries = self.changes + np.maximum(self.offsets[1:], self.offsets[:-1])
        return np.searchsorted(boundaries, local, side="right")

    def _wrapped(self, times: Micros) -> Micros:
        """The same times, those beyond the table moved back by whole calendar cycles into its last one."""
        beyond = np.maximum(times, _FAR_FUTURE) - (_FAR_FUTURE + MICROS_PER_DAY)
        return (
            np.where(beyond > 0, times - beyond // _CALENDAR_CYCLE * _CALENDAR_CYCLE, times)
            if len(self.changes)
            else times
        )


def fixed_offset(name: str) -> int | None:
    """The offset in microseconds that a zone name such as `Z` or `UTC+05:30` states, or None if it does not state one."""
    if name in ("Z", "UTC", "GMT", "UT"):
        return 0
    if not (parts := _OFFSET.fullmatch(name)):
        return None
    hours, minutes, seconds = (
        int(parts[2] or parts[3] or parts[6] or parts[9]),
        int(parts[4] or parts[7] or parts[10] or 0),
        int(parts[5] or parts[8] or 0),
    )
    total = hours * 3600 + minutes * 60 + seconds
    if minutes > 59 or seconds > 59 or total > 18 * 3600:
        return None
    return (-total if parts[1] == "-" else total) * MICROS_PER_SECOND


def constant_offset(name: str) -> int | None:
    """The offset of a zone that has never had another, in microseconds. Where it may have had one: None.

    Short names such as EST are not of these: newer versions of Java take them for places.
    """
    offset = fixed_offset(name)
    if offset is None and (name.startswith("Etc/") or name in _NAMES_OF_UTC):
        return int(zone(name).offsets[0])
    return offset


def zone(name: str, times: Micros | None = None) -> Zone:
    """The zone of that name, with a table that reaches as far as these times."""
    return _zone(name, times is not None and bool(np.any(times >= _FAR_FUTURE)))


@lru_cache(maxsize=64)
def _zone(name: str, far_future: bool) -> Zone:
    name = _SHORT_NAMES.get(name, name)
    if (offset := fixed_offset(name)) is not None:
        return Zone(np.array([], np.int64), np.array([offset], np.int64))
    try:
        rules = ZoneInfo(name)
    except (ValueError, OSError, KeyError) as cause:
        raise InvalidPredicate(
            f"unknown time zone {name!r}: use a name such as Europe/Berlin or an offset such as +05:30",
            detail="TIME_ZONE",
        ) from cause
    end = _LAST_EXCEPTION + timedelta(days=146_097 + 2) if far_future else _LAST_EXCEPTION + timedelta(days=2)
    changes: list[int] = []
    offsets = [_offset(rules, _FIRST_CHANGES)]
    here = _FIRST_CHANGES
    while here < end:
        ahead = here + _STEP
        if _offset(rules, ahead) != offsets[-1]:
            changes.append(_change_between(rules, here, ahead))
            offsets.append(_offset(rules, ahead))
        here = ahead
    return Zone(np.array(changes, np.int64), np.array(offsets, np.int64))


def _offset(rules: ZoneInfo, instant: datetime) -> int:
    offset = instant.astimezone(rules).utcoffset()
    return 0 if offset is None else round(offset.total_seconds()) * MICROS_PER_SECOND


def _change_between(rules: ZoneInfo, before: datetime, after: datetime) -> int:
    """The second in which the offset changes, by bisection."""
    low, high = int(before.timestamp()), int(after.timestamp())
    old = _offset(rules, before)
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(rules, datetime.fromtimestamp(middle, UTC)) == old:
            low = middle
        else:
            high = middle
    return high * MICROS_PER_SECOND
