"""A small table of rides, and conditions that dashboards over it ask."""

import functools
import random
from datetime import date, timedelta

import pyarrow as pa

FILES, ROWS = 4, 30_000


@functools.cache
def rows(seed: int) -> pa.Table:
    chance = random.Random(seed)
    some = range(ROWS)
    return pa.table(
        {
            "lon": [chance.gauss(0, 10) for _ in some],
            "lat": [chance.gauss(0, 10) for _ in some],
            "day": pa.array([19_000 + chance.randrange(365) for _ in some], pa.int32()).cast(pa.date32()),
            "fare": pa.array([chance.randrange(10_000) for _ in some], pa.int64()),
            "note": [f"{chance.random()}" for _ in some],
        }
    )


def boxes(seed: int, count: int = 40) -> list[str]:
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        x, y = chance.gauss(0, 6), chance.gauss(0, 6)
        found.append(f"lon BETWEEN {x:.3f} AND {x + 2:.3f} AND lat BETWEEN {y:.3f} AND {y + 2:.3f}")
    return found


def days(seed: int, count: int = 40) -> list[str]:
    chance = random.Random(seed)
    first = [date(2022, 1, 8) + timedelta(days=chance.randrange(300)) for _ in range(count)]
    return [
        f"day BETWEEN DATE '{day}' AND DATE '{day + timedelta(days=5)}' AND fare > {9_000 + day.toordinal() % 300}"
        for day in first
    ]


def sums(conditions: list[str]) -> list[str]:
    return [f"SELECT sum(fare) FROM rides WHERE {one}" for one in conditions]
