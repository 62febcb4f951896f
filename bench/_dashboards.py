"""Four tables that resemble public ones, and the queries that dashboards over them ask.

Contributions to campaigns, flights, taxi rides with places, and tweets with places: columns hang together and are skewed as real
ones are. A dashboard's queries come from a few templates, ask for recent days and for a few popular places more than for others,
and never twice for the same.
"""

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Chance: TypeAlias = np.random.Generator
Floats: TypeAlias = npt.NDArray[np.float64]
_DAY = 86_400
_EPOCH = datetime.date(1970, 1, 1)


@dataclass(frozen=True)
class DataSet:
    name: str
    rows: Callable[[int, int], pa.Table]
    """So many, by that seed."""
    query: Callable[[Chance], str]
    """The next condition that somebody asks for."""
    measures: tuple[str, str]
    """Two columns that queries sum up."""

    def queries(self, count: int, seed: int) -> list[str]:
        chance = np.random.default_rng(seed)
        return [self.query(chance) for _ in range(count)]


def _picked(
    chance: Chance, values: Sequence[Any], count: int, skew: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
    """Numbers of values and the values, the first ones far more often than the last."""
    weights = 1.0 / np.arange(1, len(values) + 1) ** skew
    numbers = chance.choice(len(values), count, p=weights / weights.sum())
    return numbers, np.array(values)[numbers]


def _days(first: datetime.date, days: npt.NDArray[Any]) -> pa.Array:
    return pa.array((days + (first - _EPOCH).days).astype(np.int32), pa.int32()).cast(pa.date32())


def _money(values: Floats) -> pa.Array:
    return pa.array(np.round(values, 2)).cast(pa.decimal128(12, 2))


def _wide(chance: Chance, least: float, most: float) -> float:
    """Any order of magnitude between them as likely as the others."""
    return float(np.exp(chance.uniform(np.log(least), np.log(most))))


def _recent(
    chance: Chance, first: datetime.date, days: int, least: float, most: float
) -> tuple[datetime.date, datetime.date]:
    wide = _wide(chance, least, most)
    end = max(wide, days - chance.exponential(days / 6))
    return first + datetime.timedelta(int(end - wide)), first + datetime.timedelta(int(end))


# Contributions: two years before an election, sums that people like, states with their towns and zip codes.

_ELECTION, _CAMPAIGN = datetime.date(2022, 11, 10), 730
_SPELT = (
    "CA NY TX FL IL PA MA WA OH VA NJ GA MI NC MD CO AZ MN MO TN CT OR WI IN SC NV LA AL KY UT IA OK KS NM AR NE ID MS NH ME;"
    "RETIRED HOME ATTORNEY PHYSICIAN ENGINEER TEACHER PROFESSOR CEO CONSULTANT HOMEMAKER REALTOR NURSE SALES WRITER FARMER"
)
_STATES, _JOBS = (words.split() for words in _SPELT.split(";"))
_SUMS = np.array([5, 10, 25, 50, 100, 250, 500, 1000, 2800, 5600])


def _contributions(count: int, seed: int) -> pa.Table:
    chance = np.random.default_rng(seed)
    day = np.clip(_CAMPAIGN - chance.gamma(1.3, 160, count), 0, _CAMPAIGN - 1).astype(np.int64)
    state, states = _picked(chance, _STATES, count, 0.9)
    town = np.minimum(chance.zipf(1.6, count), 400)
    left = chance.random(count) < 0.35 + 0.3 * np.sin(state * 1.7) ** 2
    committee = np.minimum(chance.zipf(1.5, count), 3000) * 2 + left
    job, jobs = _picked(chance, _JOBS, count, 0.8)
    liked = chance.choice(_SUMS, count, p=[0.17, 0.18, 0.22, 0.14, 0.13, 0.06, 0.05, 0.03, 0.015, 0.005])
    amount = np.where(chance.random(count) < 0.8, liked, chance.lognormal(3.5, 1.4, count)) * np.where(job == 7, 3, 1)
    return pa.table(
        {
            "day": _days(_ELECTION - datetime.timedelta(_CAMPAIGN), day),
            "amount": np.round(np.minimum(amount, 100_000), 2),
            "state": states,
            "zip": (state * 2_400 + town * 6 + chance.integers(0, 6, count)).astype(np.int32),
            "committee": committee.astype(np.int32),
            "party": np.where(committee % 40 < 3, "OTH", np.where(left, "DEM", "REP")),
            "job": jobs,
            "donor": chance.integers(0, max(10, count // 6), count),
            "note": [f"{a:05d}" for a in chance.integers(0, 100_000, count)],
        }
    )


def _about_contributions(chance: Chance) -> str:
    first = _ELECTION - datetime.timedelta(_CAMPAIGN)
    start, stop = _recent(chance, first, _CAMPAIGN, 1, 45)
    days = f"day BETWEEN DATE '{start}' AND DATE '{stop}'"
    state = _STATES[min(int(chance.zipf(1.7)) - 1, 39)]
    match chance.choice(6, p=[0.3, 0.2, 0.15, 0.15, 0.1, 0.1]):
        case 0:
            return f"state = '{state}' AND {days}"
        case 1:
            return f"{days} AND amount >= {_wide(chance, 500, 5000):.0f}"
        case 2:
            zips = _STATES.index(state) * 2_400 + int(min(chance.zipf(1.8), 300)) * 6
            return f"zip BETWEEN {zips} AND {zips + int(_wide(chance, 6, 120))}"
        case 3:
            committee = int(min(chance.zipf(1.6), 500)) * 2 + int(chance.integers(0, 2))
            return f"committee = {committee} AND {days}"
        case 4:
            return f"party = 'OTH' AND state IN ('{state}', '{chance.choice(_STATES)}')"
    return f"job = '{chance.choice(_JOBS[2:])}' AND amount BETWEEN 200 AND 3000 AND {days}"


# Flights: carriers with their hubs, distances by airports, delays that arrive later, and more of them in the evening.

_FLYING, _FLOWN = datetime.date(2021, 1, 1), 1_095
_CARRIERS = ["WN", "DL", "AA", "OO", "UA", "MQ", "B6", "AS", "NK", "YX", "F9", "G4", "HA", "9E"]
_AIRPORTS = [f"{a}{b}{c}" for a in "ABCDS" for b in "AELNT" for c in "ADLNORSTXY"]


def _flights(count: int, seed: int) -> pa.Table:
    chance = np.random.default_rng(seed)
    x, y = (np.random.default_rng(7).uniform(0, wide, len(_AIRPORTS)) for wide in (2_600, 1_300))
    carrier, carriers = _picked(chance, _CARRIERS, count, 0.7)
    ranked, _ = _picked(chance, _AIRPORTS, count, 0.9)
    origin = np.where(chance.random(count) < 0.35, carrier * 5, ranked) % len(_AIRPORTS)
    other, _ = _picked(chance, _AIRPORTS, count, 0.8)
    goal = np.where(other == origin, (other + 1) % len(_AIRPORTS), other)
    distance = np.round(60 + np.hypot(x[origin] - x[goal], y[origin] - y[goal]))
    leaves = np.clip(chance.normal(13.5, 4.5, count), 5, 23.9)
    late = np.round(chance.exponential(9, count) * (leaves / 12) + np.where(chance.random(count) < 0.04, 120, 0) - 6)
    arrives_late = np.round(late + chance.normal(-3, 9, count))
    cancelled = chance.random(count) < 0.018
    return pa.table(
        {
            "day": _days(_FLYING, np.sort(chance.integers(0, _FLOWN, count))),
            "carrier": carriers,
            "origin": np.array(_AIRPORTS)[origin],
            "goal": np.array(_AIRPORTS)[goal],
            "leaves": np.round(leaves * 60).astype(np.int16),
            "late": pa.array(late.astype(np.int32), mask=cancelled),
            "arrives_late": pa.array(arrives_late.astype(np.int32), mask=cancelled),
            "distance": distance.astype(np.int32),
            "minutes": np.round(distance / 7.5 + 25 + chance.normal(0, 6, count)).astype(np.int32),
            "cancelled": cancelled,
            "tail": [f"N{n}" for n in chance.integers(100, 7_000, count) * 20 + carrier],
        }
    )


def _about_flights(chance: Chance) -> str:
    start, stop = _recent(chance, _FLYING, _FLOWN, 1, 60)
    days = f"day BETWEEN DATE '{start}' AND DATE '{stop}'"
    origin = _AIRPORTS[min(int(chance.zipf(1.5)) - 1, 249)]
    match chance.choice(6, p=[0.3, 0.2, 0.15, 0.15, 0.1, 0.1]):
        case 0:
            return f"origin = '{origin}' AND {days}"
        case 1:
            return f"origin = '{origin}' AND goal = '{_AIRPORTS[min(int(chance.zipf(1.4)) - 1, 249)]}'"
        case 2:
            return f"carrier IN ('{chance.choice(_CARRIERS[6:])}', '{chance.choice(_CARRIERS[6:])}') AND {days}"
        case 3:
            return f"arrives_late > {int(chance.integers(60, 180))} AND {days}"
        case 4:
            low = int(chance.integers(1_200, 2_200))
            return f"distance BETWEEN {low} AND {low + 300} AND leaves >= {int(chance.integers(1_000, 1_300))}"
    return f"cancelled AND carrier = '{chance.choice(_CARRIERS)}'"


# Taxi rides: places around a few centres, airports among them; fares by distance; most in the evening.

_RIDING, _RIDDEN = datetime.date(2023, 1, 1), 365
_CENTRES = np.array(
    [
        [-73.985, 40.758],
        [-73.995, 40.73],
        [-74.011, 40.707],
        [-73.958, 40.778],
        [-73.99, 40.748],
        [-73.778, 40.641],
        [-73.874, 40.774],
        [-74.174, 40.69],
        [-73.985, 40.69],
        [-73.957, 40.717],
    ]
)
_OFTEN = np.array([0.25, 0.16, 0.1, 0.14, 0.12, 0.05, 0.05, 0.01, 0.06, 0.06])
_SPREAD = np.array([0.012, 0.010, 0.007, 0.012, 0.006, 0.004, 0.004, 0.004, 0.018, 0.010])
_PAID = ["card", "cash", "free", "dispute", "unknown"]


def _places(chance: Chance, count: int) -> Floats:
    centre = chance.choice(len(_CENTRES), count, p=_OFTEN)
    return np.asarray(_CENTRES[centre] + chance.normal(0, 1, (count, 2)) * _SPREAD[centre][:, None])


def _rides(count: int, seed: int) -> pa.Table:
    chance = np.random.default_rng(seed)
    hour = np.clip(chance.normal(15, 5.5, count), 0, 23.99)
    at = np.sort(chance.integers(0, _RIDDEN, count) * _DAY + hour * 3600 + chance.uniform(0, 60, count))
    start, stop = _places(chance, count), _places(chance, count)
    miles = np.hypot((start - stop)[:, 0] * 53, (start - stop)[:, 1] * 69) * chance.uniform(1.1, 1.5, count) + 0.3
    fare = 3 + 2.6 * miles + chance.gamma(2, 1.5, count)
    begin = np.datetime64(_RIDING, "us") + (at * 1e6).astype(np.int64).astype("timedelta64[us]")
    return pa.table(
        {
            "at": pa.array(begin, pa.timestamp("us", "UTC")),
            "lon": np.round(start[:, 0], 6),
            "lat": np.round(start[:, 1], 6),
            "to_lon": np.round(stop[:, 0], 6),
            "to_lat": np.round(stop[:, 1], 6),
            "miles": np.round(miles, 2),
            "fare": _money(fare),
            "tip": np.round(np.where(chance.random(count) < 0.6, fare * chance.uniform(0.1, 0.3, count), 0), 2),
            "people": chance.choice(6, count, p=[0.71, 0.14, 0.05, 0.03, 0.04, 0.03]).astype(np.int8) + np.int8(1),
            "paid": np.array(_PAID)[chance.choice(5, count, p=[0.62, 0.33, 0.03, 0.015, 0.005])],
        }
    )


def _about_rides(chance: Chance) -> str:
    def times(least: float, most: float, recent: bool = True) -> str:
        wide = _wide(chance, least, most) * _DAY
        end = max(wide, (_RIDDEN - (chance.exponential(60) if recent else chance.uniform(0, _RIDDEN))) * _DAY)
        begin = datetime.datetime.combine(_RIDING, datetime.time())
        low, high = (begin + datetime.timedelta(seconds=int(s)) for s in (end - wide, end))
        return f"at BETWEEN TIMESTAMP '{low}Z' AND TIMESTAMP '{high}Z'"

    def near(columns: tuple[str, str], centres: Sequence[int], least: float, most: float) -> str:
        x, y = _CENTRES[chance.choice(centres)] + chance.normal(0, 0.01, 2)
        side = _wide(chance, least, most)
        across = f"{columns[0]} BETWEEN {x - 1.3 * side:.6f} AND {x + 1.3 * side:.6f}"
        return f"{across} AND {columns[1]} BETWEEN {y - side:.6f} AND {y + side:.6f}"

    start, stop = ("lon", "lat"), ("to_lon", "to_lat")
    match chance.choice(6, p=[0.35, 0.2, 0.15, 0.15, 0.1, 0.05]):
        case 0:
            return f"{times(1 / 24, 14)} AND {near(start, (0, 1, 4, 3), 0.002, 0.03)}"
        case 1:
            return f"{near(start, (0, 1, 4, 3), 0.004, 0.03)} AND {near(stop, (5, 6, 7), 0.005, 0.02)}"
        case 2:
            paid = chance.choice(["'free'", "'dispute'", "'dispute', 'unknown'", "'cash'"])
            return f"{times(1, 30)} AND paid IN ({paid})"
        case 3:
            dear = f"fare >= {chance.uniform(30, 70):.2f} AND miles >= {chance.uniform(5, 15):.1f}"
            return f"{dear} AND {times(7, 90, recent=False)}"
        case 4:
            return times(1, 7)
    return f"people >= 5 AND {near(start, (0, 1, 4, 3), 0.004, 0.03)}"


# Tweets: towns of all sizes, languages by country, few users that many follow.

_TWEETING, _TWEETED = datetime.date(2020, 1, 1), 1_460
_TOWNS = np.random.default_rng(11).uniform([-125, -35], [150, 60], (300, 2))
_LANGUAGES = [
    "en",
    "ja",
    "es",
    "pt",
    "ar",
    "fr",
    "tr",
    "in",
    "ko",
    "th",
    "ru",
    "de",
    "it",
    "nl",
    "pl",
    "fa",
    "hi",
    "sv",
]


def _tweets(count: int, seed: int) -> pa.Table:
    chance = np.random.default_rng(seed)
    town, _ = _picked(chance, range(300), count, 1.0)
    place = _TOWNS[town] + chance.standard_t(2.5, (count, 2)) * 0.08
    language, _ = _picked(chance, _LANGUAGES, count, 1.1)
    spoken = np.where(chance.random(count) < 0.8, town % len(_LANGUAGES), language)
    followers = np.minimum(np.round(chance.pareto(0.9, count) * 150), 5e7)
    hour = np.clip(chance.normal(16, 5, count), 0, 23.99) + place[:, 0] / 15
    day = np.floor(_TWEETED * chance.beta(1.6, 1, count))
    at = np.datetime64(_TWEETING, "us") + ((day * _DAY + hour * 3600) * 1e6).astype(np.int64).astype("timedelta64[us]")
    return pa.table(
        {
            "at": pa.array(at, pa.timestamp("us", "UTC")),
            "lon": np.round(place[:, 0], 5),
            "lat": np.round(place[:, 1], 5),
            "lang": np.array(_LANGUAGES)[spoken],
            "followers": followers.astype(np.int64),
            "retweets": np.round(chance.pareto(1.4, count) * (followers + 50) ** 0.4 / 4).astype(np.int64),
            "length": np.clip(chance.gamma(3, 30, count), 3, 280).astype(np.int16),
            "user": chance.integers(0, max(10, count // 9), count),
            "device": _picked(chance, ["android", "iphone", "web", "ipad", "bot"], count, 1.0)[1],
            "tag": [None if n > 2_000 else f"#{n * 7919 % 10_007}" for n in chance.zipf(1.3, count).tolist()],
        }
    )


def _about_tweets(chance: Chance) -> str:
    start, stop = _recent(chance, _TWEETING, _TWEETED, 1, 90)
    times = f"at BETWEEN TIMESTAMP '{start} 00:00:00Z' AND TIMESTAMP '{stop} 00:00:00Z'"
    x, y = _TOWNS[min(int(chance.zipf(1.5)) - 1, 299)] + chance.normal(0, 0.05, 2)
    side = _wide(chance, 0.02, 0.6)
    near = f"lon BETWEEN {x - side:.4f} AND {x + side:.4f} AND lat BETWEEN {y - side:.4f} AND {y + side:.4f}"
    match chance.choice(6, p=[0.3, 0.2, 0.15, 0.15, 0.1, 0.1]):
        case 0:
            return f"{near} AND {times}"
        case 1:
            return near
        case 2:
            return f"lang IN ('{chance.choice(_LANGUAGES[5:])}', '{chance.choice(_LANGUAGES[5:])}') AND {times}"
        case 3:
            return f"followers >= {_wide(chance, 2e4, 1e6):.0f} AND {times}"
        case 4:
            return f"retweets >= {_wide(chance, 200, 5000):.0f} AND lang = '{chance.choice(_LANGUAGES[:5])}'"
    return f"tag = '#{int(min(chance.zipf(1.5), 500)) * 7919 % 10_007}' AND {times}"


DATA_SETS = {
    one.name: one
    for one in (
        DataSet("contributions", _contributions, _about_contributions, ("amount", "donor")),
        DataSet("flights", _flights, _about_flights, ("minutes", "distance")),
        DataSet("rides", _rides, _about_rides, ("tip", "miles")),
        DataSet("tweets", _tweets, _about_tweets, ("followers", "length")),
    )
}
