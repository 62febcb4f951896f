"""How the value of each setting is read: as it is in code, or as text. Each raises `ValueError`, which says what to give instead.

Numbers are bounded here, so that whoever works with a setting can reckon with it.
"""

import math
import os
import re
from collections.abc import Callable
from typing import Any

from grebe.credentials import refuse_credentials

LONGEST_SECONDS = 36_525 * 86_400
"""A hundred years."""
LONGEST_DAYS = 1_000_000
MOST_VERSIONS = 2**31 - 1
_TOO_MANY_BYTES = 2**63
_UNITS = {"": 0, "b": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgtp]?)(?:i?b)?\s*", re.IGNORECASE | re.ASCII)
_SWITCHES = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?[+-](?:0?\d|1[0-8])(?::[0-5]\d)?", re.ASCII)


def parse_bytes(value: object) -> int:
    """Return a number of bytes, given as such or as text such as `"256MB"`, or raise `ValueError`. Units are powers of 1024, as in
    Spark: k, KB and KiB are all 1024."""
    size: float = -1
    if isinstance(value, int) and not isinstance(value, bool):
        size = value
    elif isinstance(value, str) and (match := _SIZE.fullmatch(value)):
        size = float(match[1]) * 1024 ** _UNITS[match[2].lower()]
    if not 0 <= size < _TOO_MANY_BYTES:
        raise ValueError('no size. Give a number of bytes below 2^63, or text such as "256MB"')
    return int(size)


def parse_switch(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in _SWITCHES:
        return _SWITCHES[value.strip().lower()]
    raise ValueError("neither true nor false. Give one of the two")


def _number(value: object) -> float:
    """Return NaN for what is no number, or one that no float can hold: it fails every comparison."""
    try:
        return float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        return math.nan


def parse_share(value: object) -> float:
    number = _number(value)
    if not 0 <= number <= 1:
        raise ValueError("no share. Give a number from 0 to 1")
    return number


def parse_seconds(value: object) -> float:
    number = _number(value)
    if not 0 <= number <= LONGEST_SECONDS:
        raise ValueError(f"no time span. Give a number of seconds from 0 to {LONGEST_SECONDS}")
    return number


def parse_positive_seconds(value: object) -> float:
    number = _number(value)
    if not 0 < number <= LONGEST_SECONDS:
        raise ValueError(f"no time span. Give a number of seconds above 0, {LONGEST_SECONDS} at the most")
    return number


def parse_price(value: object) -> float:
    number = _number(value)
    if not 0 <= number < math.inf:
        raise ValueError("no price. Give a number of dollars, 0 or more")
    return number


def parse_count(value: object) -> int:
    number = _number(value)
    if not (0 <= number <= MOST_VERSIONS and number == int(number)):
        raise ValueError(f"no number of versions. Give 0, 1, 2, … up to {MOST_VERSIONS}")
    return int(number)


def parse_days(value: object) -> float:
    number = _number(value)
    if not 0 < number <= LONGEST_DAYS:
        raise ValueError(f"no time span. Give a number of days above 0, {LONGEST_DAYS} at the most")
    return number


def parse_literals(value: object) -> str:
    if value not in ("plain", "hashed"):
        raise ValueError('unknown. Give "plain", or "hashed" for digests in the place of values')
    return str(value)


def parse_consistency(value: object) -> str:
    if value not in ("current", "snapshot"):
        raise ValueError('unknown. Give "current", or "snapshot" for the table as of the last refresh')
    return str(value)


def parse_identity(value: object) -> str:
    if value not in ("stat", "footer", "times"):
        raise ValueError('unknown. Give "stat", "footer" for a digest of each file\'s end besides, or "times" for less')
    return str(value)


def parse_place(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("no text. Give a path or a URI, or leave the setting out")
    refuse_credentials(value)
    return _from_home(_named(value))


def parse_places(value: object) -> tuple[str, ...]:
    given = value.split(",") if isinstance(value, str) else value
    if isinstance(given, list | tuple):
        # First, since the message about any other fault shows the value.
        for one in given:
            if isinstance(one, str):
                refuse_credentials(one.strip())
    if not isinstance(given, list | tuple) or not all(isinstance(one, str) for one in given):
        raise ValueError("no list of places. Give URIs or paths, as a list or as text separated by commas")
    return tuple(_from_home(_named(one.strip())) for one in given if one.strip())


def _named(place: str) -> str:
    """Return the place itself. Raise `ValueError` where no file system and no store can have one of that name."""
    if "\0" in place:
        raise ValueError("no name of a place. Give a path or a URI without NUL characters")
    try:
        place.encode()
    except UnicodeEncodeError:
        raise ValueError("no name of a place. Give a path or a URI in UTF-8") from None
    return place


def _from_home(place: str) -> str:
    return os.path.expanduser(place) if place.startswith("~") else place  # noqa: PTH111 - a URI is no `Path`


def parse_time_zone(value: object) -> str:
    if isinstance(value, str) and (_OFFSET.fullmatch(value) or _is_zone_name(value)):
        return value
    raise ValueError(
        'no time zone that is known here. Give a name such as "Europe/Berlin", or an offset such as "+02:00"'
    )


def _is_zone_name(text: str) -> bool:
    import zoneinfo  # only here: `import grebe` does not pay for it

    try:
        zoneinfo.ZoneInfo(text)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):  # absolute paths, empty text, names of folders
        return False
    return True


def or_none(parse: Callable[[object], Any]) -> Callable[[object], Any]:
    def parse_or_none(value: object) -> Any:
        return None if value is None or (isinstance(value, str) and value.lower() == "none") else parse(value)

    return parse_or_none
