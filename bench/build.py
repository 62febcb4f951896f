"""What does making a covering index take, next to a plain Spark job that reads, shuffles, sorts and writes the same columns?

Also: two indexes of one table against one, since both come from one scan; and two cores against one.
"""

import statistics
import time
from functools import partial
from pathlib import Path

import grebe
from bench._indexing import sort_and_write
from bench._session import bench_session
from bench.harness import Contestant, Report, Scale, in_fresh_process, samples, timed
from grebe.clock import SYSTEM
from testbed import tpch
from testbed.cached import working_copy

BY_ORDER = grebe.Covering(
    "by_order", on=["l_orderkey"], include=["l_suppkey", "l_quantity", "l_extendedprice", "l_discount", "l_shipdate"]
)
BY_PART = grebe.Covering(
    "by_part", on=["l_partkey"], include=["l_suppkey", "l_quantity", "l_extendedprice", "l_discount", "l_shipdate"]
)
BY_DATE = grebe.Covering(
    "by_date", on=["l_shipdate"], include=["l_suppkey", "l_quantity", "l_extendedprice", "l_discount"], buckets=0
)
ORDERS = grebe.Covering(
    "by_customer", on=["o_custkey"], include=["o_orderkey", "o_orderdate", "o_totalprice", "o_shippriority"]
)


def run(scale: Scale, report: Report) -> None:
    factor, runs = scale.pick(0.1, 1), scale.pick(2, 5)
    with bench_session() as (spark, folder):
        lake = grebe.attach(spark)
        tables = working_copy(tpch.generate(factor), folder / "lake")
        build = partial(_build, lake, folder)

        for table, kind in (("lineitem", BY_ORDER), ("lineitem", BY_PART), ("lineitem", BY_DATE), ("orders", ORDERS)):
            contestants = {
                "ours": build(tables / table, kind),
                "plain": timed(partial(sort_and_write, spark, tables, table, kind)),
            }
            _compare(f"{table} {kind.name}", contestants, "plain sort and write", runs, report)

        pair = {
            "ours": build(tables / "lineitem", BY_ORDER, BY_PART),
            "plain": build(tables / "lineitem", BY_ORDER),
        }
        _compare("two indexes of lineitem", pair, "one of them", runs, report)

    alone = {
        "ours": lambda: float(in_fresh_process(_build_on, 2, factor).value),
        "plain": lambda: float(in_fresh_process(_build_on, 1, factor).value),
    }
    costs = samples(alone, scale.pick(1, 3), warm_up=0)
    medians = {name: statistics.median(of) for name, of in costs.items()}
    report.add("lineitem by_order, 2 cores", "s", medians["ours"], "1 core", medians["plain"], len(costs["ours"]))


def _compare(case: str, contestants: dict[str, Contestant], rival: str, runs: int, report: Report) -> None:
    costs = samples(contestants, runs)
    ours, other = (statistics.median(costs[name]) for name in ("ours", "plain"))
    report.add(case, "s", ours, rival, other, runs)


def _build(lake: "grebe.Lake", folder: Path, table: Path, *kinds: "grebe.Covering") -> Contestant:
    """Every round makes them anew, at another place."""

    def create() -> None:
        lake.table(str(table), location=str(folder / "indexes" / SYSTEM.new_id())).create(*kinds)

    return timed(create)


def _build_on(cores: int, factor: float) -> float:
    """The seconds of a build once the session is warm."""
    with bench_session(cores) as (spark, folder):
        lake = grebe.attach(spark)
        tables = working_copy(tpch.generate(factor), folder / "lake")
        _build(lake, folder, tables / "orders", ORDERS)()
        start = time.perf_counter()
        _build(lake, folder, tables / "lineitem", BY_ORDER)()
        return time.perf_counter() - start
