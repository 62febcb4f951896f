"""A few queries with covering indexes and without, on generated tables, in a Spark of this machine."""

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from grebe.cli.output import Output, Row
from grebe.cli.spark_work import progress
from grebe.indexes.covering.spec import Covering
from grebe.indexes.sketches.bloom import Bloom
from grebe.indexes.skipping.spec import Skipping
from grebe.planner.explain import Explanation
from grebe.session.lake import Lake, attach

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SALES, FILES = 2_000_000, 16
CUSTOMERS = 200_000
TURNS = 3
SETTINGS = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
_CUSTOMERS_ADDED = (4_000, 5_000)
"""Of the sales of one more file; the one who is asked for is among them."""
_ONE_CUSTOMER = "one customer"
QUERIES = {
    _ONE_CUSTOMER: "SELECT * FROM sales WHERE customer = 4711",
    "a day": "SELECT count(*), sum(price) FROM sales WHERE day = DATE'2026-03-01'",
    "best customers": "SELECT customer, sum(price) FROM sales GROUP BY customer ORDER BY 2 DESC, 1 LIMIT 10",
    "a join": "SELECT c.country, sum(s.price) FROM sales s JOIN customers c ON s.customer = c.customer GROUP BY c.country",
    "one remark": "SELECT * FROM sales WHERE comment = '{comment}'",
}


@dataclass(frozen=True, slots=True)
class Compared:
    rows: list[Row]
    """One a query: how long it took without indexes and with them."""
    explained: Explanation
    """One of them."""
    indexes: dict[str, str]
    """As HTML, by table."""


def compare(session: "SparkSession", lake_folder: Path, output: Output) -> Compared:
    _generate(lake_folder)
    output.note(f"\n{SALES:,} sales in {FILES} Parquet files, {CUSTOMERS:,} customers in {lake_folder}")
    lake = attach(session)
    _create(lake, session, lake_folder, output)
    comment = pq.read_table(lake_folder / "sales" / f"part-{FILES // 2:03}.parquet", columns=["comment"])[0][0].as_py()
    asked = {name: sql.format(comment=comment) for name, sql in QUERIES.items()}
    rows = [_compared(lake, session, name, sql) for name, sql in asked.items()]
    output.note("Queries as before, not one changed line; the answers are the same:\n")
    with _one_more_file(lake_folder):
        _name_tables(session, lake_folder)
        rows.append(_compared(lake, session, f"{_ONE_CUSTOMER}, after a file was added", asked[_ONE_CUSTOMER]))
        frame = session.sql(asked[_ONE_CUSTOMER])
        frame.collect()
        explained = lake.explain(frame)
    output.note(str(explained))
    shown = {name: lake.table(str(lake_folder / name)).indexes() for name in ("sales", "customers")}
    return Compared(rows, explained, {name: infos._repr_html_() for name, infos in shown.items()})


def _generate(folder: Path) -> None:
    random = np.random.default_rng(42)
    (folder / "sales").mkdir(parents=True, exist_ok=True)
    (folder / "customers").mkdir(parents=True, exist_ok=True)
    for number in range(FILES):
        pq.write_table(_sales(random, SALES // FILES), folder / "sales" / f"part-{number:03}.parquet")
    countries = pa.array(["AT", "DE", "FR", "IN", "JP", "NG", "US"])
    customers = {
        "customer": pa.array(np.arange(CUSTOMERS)),
        "country": countries.take(pa.array(random.integers(0, 7, CUSTOMERS))),
    }
    pq.write_table(pa.table(customers), folder / "customers" / "part-000.parquet")


def _sales(random: np.random.Generator, count: int, customers: tuple[int, int] | None = None) -> pa.Table:
    days = np.datetime64("2026-01-01") + random.integers(0, 365, count)
    return pa.table(
        {
            "customer": random.integers(*(customers or (0, CUSTOMERS)), count),
            "day": pa.array(days.astype("datetime64[D]")),
            "price": pa.array(random.integers(100, 1_000_000, count)).cast(pa.decimal128(21, 2)),
            "comment": pa.array([f"sale {number:x}" for number in random.integers(0, 2**40, count).tolist()]),
        }
    )


def _name_tables(session: "SparkSession", folder: Path) -> None:
    for table in ("sales", "customers"):
        session.read.parquet(str(folder / table)).createOrReplaceTempView(table)


def _create(lake: Lake, session: "SparkSession", folder: Path, output: Output) -> None:
    start = time.perf_counter()
    with progress(session, "Creating indexes"):
        sales = lake.table(str(folder / "sales"))
        made = sales.create(
            Covering("by_customer", on="customer", include=["day", "price", "comment"]),
            Covering("by_day", on="day", include=["price"], buckets=0),
            Skipping("skip", Bloom("comment")),
        )
        made += lake.table(str(folder / "customers")).create(Covering("customers", on="customer", include="country"))
    _name_tables(session, folder)
    files = [file for table in ("sales", "customers") for file in (folder / table).iterdir()]
    size = sum(info.bytes or 0 for info in made) / sum(file.stat().st_size for file in files)
    names = ", ".join(info.name for info in made)
    output.note(f"Indexes {names} were made in {time.perf_counter() - start:.1f} s, {size:.0%} of the data's size.")


@contextmanager
def _one_more_file(folder: Path) -> Iterator[None]:
    added = folder / "sales" / "part-999.parquet"
    pq.write_table(_sales(np.random.default_rng(7), 20_000, _CUSTOMERS_ADDED), added)
    try:
        yield
    finally:
        added.unlink()


def _compared(lake: Lake, session: "SparkSession", name: str, sql: str) -> Row:
    taken: dict[bool, list[float]] = {True: [], False: []}
    answers = []
    for turn in range(1 + TURNS):
        for enabled in (True, False):
            lake.enabled = enabled
            start = time.perf_counter()
            answers.append(sorted(map(repr, session.sql(sql).collect())))
            if turn:
                taken[enabled].append(time.perf_counter() - start)
    lake.enabled = True
    if any(answer != answers[0] for answer in answers):
        raise AssertionError(f"two answers to {name!r} differ")
    with_index, without = statistics.median(taken[True]), statistics.median(taken[False])
    explained: dict[str, Any] = lake.explain(sql).to_dict()
    return {
        "query": name,
        "rows": len(answers[0]),
        "without_ms": round(without * 1000),
        "with_ms": round(with_index * 1000),
        "times_faster": round(without / with_index, 1),
        "used": explained["used"],
    }
