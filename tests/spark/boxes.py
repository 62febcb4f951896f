"""A table of columns that go together, are skewed and hold all that is odd, and boxes over them: for copies laid out by several."""

import datetime
import math
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

PLAIN = {"write_statistics": False}
"""Those of Arrow leave NaN out, so that Spark itself would lose rows by them."""
FIRST = datetime.date(2020, 1, 1)
PLACE = pa.struct([("lon", pa.float64()), ("lat", pa.float64())])


def rows(count: int, seed: int) -> pa.Table:
    """x: skewed, with NaN, -0.0 and NULL; y: goes with x; d: days; s: text of few and of many values; m: money; h: nested."""
    rng = np.random.default_rng(seed)
    x = np.round(rng.pareto(1.5, count), 3) * rng.choice([1, 1, 1, -1], count)
    odd = rng.integers(0, 20, count)
    x[odd == 0], x[odd == 1] = math.nan, -0.0
    y = np.clip(np.nan_to_num(x) * 10 + rng.normal(0, 3, count), -1e6, 1e6).astype(np.int64)
    s = [("aé", "b", "", "\U0001f426")[n] if n < 4 else f"user{n * n}" for n in rng.integers(0, 60, count)]
    lon, lat = rng.normal(8, 2, count), rng.normal(47, 1, count)
    return pa.table(
        {
            "x": pa.array(x, mask=odd == 2),
            "y": pa.array(y, pa.int64(), mask=odd == 3),
            "d": pa.array([FIRST + datetime.timedelta(int(n)) for n in rng.integers(0, 700, count)], pa.date32()),
            "s": pa.array(s, pa.string(), mask=odd == 4),
            "m": pa.array(
                [Decimal(int(n)).scaleb(-2) for n in rng.integers(-500, 99_999, count)], pa.decimal128(12, 2)
            ),
            "h": pa.array([{"lon": one, "lat": other} for one, other in zip(lon, lat, strict=True)], PLACE),
            "one": pa.array([7] * count),
            "at": pa.array(rng.integers(0, 10**15, count), pa.timestamp("us", "UTC")),
            "list": pa.array([[int(n), None] for n in rng.integers(0, 5, count)], pa.list_(pa.int64())),
            "n": pa.array(np.arange(count) + seed * 1_000_000),
        }
    )


def literal(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case float():
            return f"CAST('{value}' AS DOUBLE)"
        case str():
            return f"'{value}'"
        case datetime.date():
            return f"DATE '{value}'"
    return str(value)


def boxes(seed: int, count: int) -> Iterator[tuple[str, ...]]:
    """Conditions on one to four columns, with ends that occur in the table and some that do not."""
    chance = random.Random(seed)
    values = {name: column.to_pylist() for name, column in zip("xydsm", rows(700, 1).columns[:5], strict=True)}

    def one(name: str) -> str:
        some = [value for value in values[name] if value is not None]
        low, high = (literal(chance.choice(some)) for _ in range(2))
        forms = [
            f"{name} BETWEEN {low} AND {high}",
            f"{name} >= {low}",
            f"{name} < {low}",
            f"{name} IN ({low}, {high})",
        ]
        forms += [f"{name} IS NULL", f"NOT ({name} > {high})", f"{name} <=> {low}", f"{name} <> {high}"]
        forms += [f"({name} = {low} OR y > 100)", f"{name} > {low} AND {name} <= {high}"]
        forms += ["s LIKE 'user1%'"] if name == "s" else []
        return chance.choices(forms, [6, 2, 2, 1, 1, 1, 1, 1, 1, 2, *([4] if name == "s" else [])])[0]

    for _ in range(count):
        yield tuple(map(one, chance.sample("xydsm", chance.randint(1, 4))))
