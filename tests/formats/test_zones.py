"""Time zones are those of zoneinfo, at any time, with java.time's choice where a clock shows a time twice or never."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grebe.errors import InvalidPredicate
from grebe.formats.zones import MICROS_PER_DAY, MICROS_PER_SECOND, fixed_offset, zone

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONES = [
    "America/New_York",
    "Asia/Kathmandu",
    "Africa/Casablanca",
    "Europe/Dublin",
    "Pacific/Apia",
    "America/Sao_Paulo",
    "Asia/Gaza",
]
SECONDS = st.integers(-62_000_000_000, 253_000_000_000)


def moment(text: str) -> int:
    """Microseconds since 1970 of a time without a zone."""
    return (datetime.fromisoformat(text) - datetime(1970, 1, 1)) // timedelta(microseconds=1)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(ZONES),
    st.lists(st.one_of(SECONDS, st.integers(-5_000_000_000, 5_000_000_000)), min_size=30, max_size=30),
)
def test_the_clock_shows_what_zoneinfo_says(name: str, seconds: list[int]) -> None:
    instants = np.array(seconds) * MICROS_PER_SECOND
    shown = zone(name, instants).to_local(instants)
    for second, local in zip(seconds, shown, strict=True):
        offset = (EPOCH + timedelta(seconds=second)).astimezone(ZoneInfo(name)).utcoffset()
        assert offset is not None
        assert local == second * MICROS_PER_SECOND + offset // timedelta(microseconds=1)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(available_timezones())), st.integers(1820, 2090))
def test_no_change_of_any_zone_is_missed(name: str, year: int) -> None:
    hours = np.arange(0, 366 * 24, 6) * 3600 * MICROS_PER_SECOND + moment(f"{year}-01-01")
    shown = zone(name, hours).to_local(hours)
    rules = ZoneInfo(name)
    expected = [(EPOCH + timedelta(microseconds=int(at))).astimezone(rules).utcoffset() for at in hours]
    assert [timedelta(microseconds=int(offset)) for offset in shown - hours] == expected


@pytest.mark.parametrize(
    ("name", "local", "instant"),
    [
        ("America/New_York", "2020-01-01T00:00:00", "2020-01-01T05:00:00"),
        ("America/New_York", "2020-03-08T02:30:00", "2020-03-08T07:30:00"),  # skipped: an hour later on the new clock
        ("America/New_York", "2020-11-01T01:30:00", "2020-11-01T05:30:00"),  # shown twice: the first time
        ("Asia/Kathmandu", "1986-01-01T00:07:00", "1985-12-31T18:37:00"),  # a quarter of an hour skipped at midnight
        ("Europe/Berlin", "0500-06-01T00:00:00", "0500-05-31T23:06:32"),  # local mean time
        ("America/New_York", "9999-07-01T00:00:00", "9999-07-01T04:00:00"),
        ("UTC", "2020-01-01T00:00:00", "2020-01-01T00:00:00"),
        ("+05:30", "2020-01-01T00:00:00", "2019-12-31T18:30:00"),
    ],
)
def test_a_local_time_is_one_instant(name: str, local: str, instant: str) -> None:
    clock = np.array([moment(local)])
    assert zone(name, clock).to_instant(clock).tolist() == [moment(instant)]


@pytest.mark.parametrize(
    ("name", "day", "instant"),
    [
        ("America/New_York", "2020-03-08", "2020-03-08T05:00:00"),
        ("America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00:00"),  # starts at one o'clock
        ("America/Sao_Paulo", "2018-02-18", "2018-02-18T03:00:00"),
        ("Pacific/Apia", "2011-12-30", "2011-12-30T10:00:00"),  # a day that never was starts with the next one
        ("Pacific/Apia", "2011-12-31", "2011-12-30T10:00:00"),
        ("UTC", "2020-01-01", "2020-01-01T00:00:00"),
    ],
)
def test_a_day_starts_at_its_first_instant(name: str, day: str, instant: str) -> None:
    days = np.array([moment(day) // MICROS_PER_DAY])
    assert zone(name).start_of_day(days).tolist() == [moment(instant)]


def test_far_years_follow_the_rules_of_the_calendar_s_cycle() -> None:
    # 400 years later the calendar is the same, so the clock changes on the same day.
    near = np.arange(366) * MICROS_PER_DAY + moment("2400-01-01")
    cycle = 146_097 * MICROS_PER_DAY
    for cycles in (1, 5, 100):
        far = near + cycles * cycle
        assert (
            zone("America/New_York", far).to_local(far) - far == zone("America/New_York", near).to_local(near) - near
        ).all()


@pytest.mark.parametrize(
    ("name", "hours"),
    [
        ("Z", 0.0),
        ("UTC", 0.0),
        ("+1", 1.0),
        ("-08", -8.0),
        ("+05:30", 5.5),
        ("+0530", 5.5),
        ("+5:3", 5.05),
        ("GMT+8", 8.0),
        ("UTC-01:00:36", -1.01),
    ],
)
def test_offsets_are_zones_too(name: str, hours: float) -> None:
    assert fixed_offset(name) == round(hours * 3600) * MICROS_PER_SECOND


@pytest.mark.parametrize(
    "name", ["", "z", "utc", "+530", "+19", "+18:01", "+01:60", "Mars/Olympus", "../etc/passwd", "America"]
)
def test_an_unknown_zone_is_refused(name: str) -> None:
    assert fixed_offset(name) is None
    with pytest.raises(InvalidPredicate, match=r"\[INVALID_PREDICATE_TIME_ZONE\].*unknown time zone"):
        zone(name)


def test_java_s_short_names_are_known() -> None:
    winter = np.array([moment("2020-01-01")])
    assert zone("PST").to_instant(winter).tolist() == [moment("2020-01-01T08:00:00")]
    assert zone("EST").to_instant(winter).tolist() == [moment("2020-01-01T05:00:00")]
