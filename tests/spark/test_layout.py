"""Queries like those that a layout was learned from are answered from it: the rows that they are without it, from fewer files."""

import datetime
import math
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import grebe
from grebe.indexes.content import parts
from grebe.indexes.layout import build
from grebe.planner.decision import StandIn
from tests.spark.served import Served, write

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("spark layout")]

PLAIN = {"write_statistics": False}
"""Those of Arrow leave NaN out, so that Spark itself would lose rows by them."""
FIRST = datetime.date(2020, 1, 1)


def rows(count: int, seed: int) -> pa.Table:
    """x: skewed, with NaN, -0.0 and NULL; y: goes with x; d: days; s: text of few and of many values; m: money; h: nested."""
    rng = np.random.default_rng(seed)
    x = np.round(rng.pareto(1.5, count), 3) * rng.choice([1, 1, 1, -1], count)
    odd = rng.integers(0, 20, count)
    x[odd == 0], x[odd == 1] = math.nan, -0.0
    y = np.clip(np.nan_to_num(x) * 10 + rng.normal(0, 3, count), -1e6, 1e6).astype(np.int64)
    s = [("aé", "b", "", "\U0001f426")[n] if n < 4 else f"user{n * n}" for n in rng.integers(0, 60, count)]
    return pa.table(
        {
            "x": pa.array(x, mask=odd == 2),
            "y": pa.array(y, pa.int64(), mask=odd == 3),
            "d": pa.array([FIRST + datetime.timedelta(int(n)) for n in rng.integers(0, 700, count)], pa.date32()),
            "s": pa.array(s, mask=odd == 4),
            "m": pa.array(
                [Decimal(int(n)).scaleb(-2) for n in rng.integers(-500, 99_999, count)], pa.decimal128(12, 2)
            ),
            "h": pa.array([{"lon": one} for one in rng.normal(8, 2, count)]),
            "at": pa.array(rng.integers(0, 10**15, count), pa.timestamp("us", "UTC")),
            "list": pa.array([[int(n), None] for n in rng.integers(0, 5, count)]),
            "n": pa.array(np.arange(count) + seed * 1_000_000),
        }
    )


def literal(value: Any) -> str:
    match value:
        case float():
            return f"CAST('{value}' AS DOUBLE)"
        case str():
            return f"'{value}'"
        case datetime.date():
            return f"DATE '{value}'"
    return str(value)


def asked(seed: int, count: int) -> Iterator[str]:
    """Conditions on one to four columns, with ends that occur in the table."""
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
        yield " AND ".join(map(one, chance.sample("xydsm", chance.randint(1, 4))))


def learned(name: str = "learned") -> grebe.Layout:
    return grebe.Layout(name, queries=[*asked(1, 60), ("h.lon BETWEEN 7 AND 7.5", 3), "at < TIMESTAMP '1980-01-01'"])


@pytest.fixture(scope="module")
def many_files() -> Iterator[None]:
    """Also of a small table, with leaves to match, so that some are left out."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(parts, "_SMALL", ())
        patched.setattr(build, "_LEAF_ROWS", 20)
        yield


@pytest.fixture(scope="module")
def lake(served: Served, folder: Path, many_files: None) -> Served:
    write(folder / "t", *(rows(700, seed) for seed in range(1, 5)), **PLAIN)
    served.lake.table(str(folder / "t")).create(learned())
    served.view("t", folder / "t")
    return served


def left_out(lake: Served) -> bool:
    """Whether some files of the index were not read by the last query."""
    return any(isinstance(one, StandIn) and len(one.content) < len(one.copy.content) for one in lake.decision.choices)


def query(condition: str) -> str:
    return f"SELECT * FROM t WHERE {condition}"


@pytest.mark.parametrize("seed", [1, 2], ids=["logged", "others"])
def test_queries_have_the_rows_that_they_have_without_the_index(lake: Served, seed: int) -> None:
    pruned, conditions = 0, list(asked(seed, 14))
    for condition in conditions:
        seen = lake.same_rows(query(condition))
        assert seen.used == ["learned"], (condition, lake.reasons(query(condition)))
        pruned += left_out(lake)
    assert pruned > len(conditions) // 2
