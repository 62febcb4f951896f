"""Ten questions of a dashboard over TPC-H: by views that are fresh, by views that miss a tenth of the table, and without.

The rival is Spark without an index, in the same session. Views are made once for all questions; none of these names one.
"""

import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import grebe
from bench._session import bench_session
from bench.harness import Report, Scale, ratio_interval, samples, timed
from testbed import tpch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PARTS = 20
_NEWEST = 2
"""So many of the parts come later: a tenth."""
_REVENUE = "sum(l_extendedprice * (1 - l_discount))"
VIEWS = {
    "shipped": f"""SELECT l_shipdate, l_returnflag, l_linestatus, l_shipmode, sum(l_quantity) AS q, sum(l_extendedprice) AS p,
        {_REVENUE} AS r, avg(l_discount) AS d, count(*) AS n
        FROM {{lineitem}} GROUP BY l_shipdate, l_returnflag, l_linestatus, l_shipmode""",
    "ordered": f"""SELECT o_orderdate, o_orderpriority, l_shipmode, {_REVENUE} AS r, count(*) AS n, max(l_shipdate) AS late
        FROM {{lineitem}} JOIN {{orders}} ON l_orderkey = o_orderkey GROUP BY o_orderdate, o_orderpriority, l_shipmode""",
    "supplied": f"""SELECT s_nationkey, year(l_shipdate) AS y, {_REVENUE} AS r, sum(l_quantity) AS q
        FROM {{lineitem}} JOIN {{supplier}} ON l_suppkey = s_suppkey GROUP BY s_nationkey, year(l_shipdate)""",
}
QUESTIONS = {
    "pricing summary": """SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), avg(l_discount), count(*)
        FROM lineitem WHERE l_shipdate <= DATE'1998-09-02' GROUP BY l_returnflag, l_linestatus""",
    "revenue by month": f"""SELECT year(l_shipdate) y, month(l_shipdate) m, {_REVENUE} FROM lineitem GROUP BY 1, 2 ORDER BY y, m""",
    "revenue of a year": f"SELECT {_REVENUE} FROM lineitem WHERE year(l_shipdate) = 1995",
    "modes of a quarter": f"""SELECT l_shipmode, count(*), {_REVENUE} r FROM lineitem
        WHERE l_shipdate >= DATE'1996-01-01' AND l_shipdate < DATE'1996-04-01' GROUP BY l_shipmode ORDER BY r DESC""",
    "best days": f"""SELECT l_shipdate, {_REVENUE} AS r FROM lineitem GROUP BY l_shipdate ORDER BY r DESC LIMIT 10""",
    "orders by priority": """SELECT o_orderpriority, count(*) FROM lineitem JOIN orders ON l_orderkey = o_orderkey
        WHERE o_orderdate >= DATE'1994-01-01' GROUP BY o_orderpriority""",
    "urgent by year": f"""SELECT year(o_orderdate) y, {_REVENUE} FROM lineitem JOIN orders ON l_orderkey = o_orderkey
        WHERE o_orderpriority = '1-URGENT' GROUP BY 1""",
    "latest by mode": """SELECT l_shipmode, max(l_shipdate), count(*) FROM lineitem JOIN orders ON l_orderkey = o_orderkey
        GROUP BY l_shipmode""",
    "revenue by nation": f"""SELECT n_name, {_REVENUE} AS r FROM lineitem, supplier, nation
        WHERE l_suppkey = s_suppkey AND s_nationkey = n_nationkey GROUP BY n_name ORDER BY r DESC""",
    "nations of a year": """SELECT n_name, sum(l_quantity) FROM lineitem, supplier, nation
        WHERE l_suppkey = s_suppkey AND s_nationkey = n_nationkey AND year(l_shipdate) = 1997 GROUP BY n_name""",
}
RIVAL = "Spark without an index"


def run(scale: Scale, report: Report) -> None:
    runs = scale.pick(3, 9)
    with bench_session() as (spark, folder):
        later = _tables(folder, scale.pick(0.1, 1.0))
        lake = grebe.attach(spark)
        _seen(spark, folder)
        table = lake.table(str(folder / "lineitem"))
        for name, query in VIEWS.items():
            paths = {one: f"parquet.`{folder / one}`" for one in ("lineitem", "orders", "supplier")}
            made = timed(partial(table.create, grebe.View(name, query.format(**paths))))
            report.add(f"making {name}", "s", made())
        report.add("bytes of the views", "share", sum(index.bytes for index in table.indexes()) / _bytes(folder))
        _questions(spark, lake, report, "fresh", runs)
        for path in later:
            path.rename(folder / "lineitem" / path.name)
        _seen(spark, folder)
        _questions(spark, lake, report, "a tenth appended", runs)
        report.add("refresh of all", "s", timed(table.refresh)())


def _questions(spark: "SparkSession", lake: grebe.Lake, report: Report, state: str, runs: int) -> None:
    ratios = []
    for name, text in QUESTIONS.items():

        def ask(enabled: bool, text: str = text) -> None:
            lake.enabled = enabled
            spark.sql(text).collect()

        cost = samples({"ours": timed(partial(ask, True)), RIVAL: timed(partial(ask, False))}, runs)
        ours, theirs = (sorted(cost[one])[len(cost[one]) // 2] for one in ("ours", RIVAL))
        report.add(f"{name}, {state}", "s", ours, RIVAL, theirs, runs, ratio_interval(cost["ours"], cost[RIVAL]))
        ratios.append(ours / theirs)
    lake.enabled = True
    mean = 1.0
    for ratio in ratios:
        mean *= ratio ** (1 / len(ratios))
    report.add(f"geometric mean, {state}", "ratio", mean)
    report.add(f"worst, {state}", "ratio", max(ratios))


def _tables(folder: Path, scale: float) -> list[Path]:
    """The tables, less some files of lineitem: those are beside it."""
    made = tpch.generate(scale, parts=_PARTS)
    for name in ("orders", "supplier", "nation"):
        shutil.copytree(made / name, folder / name)
    (folder / "lineitem").mkdir()
    (folder / "later").mkdir()
    files = sorted((made / "lineitem").glob("*.parquet"))
    newest = max(1, round(len(files) * _NEWEST / _PARTS))
    for place, path in enumerate(files):
        shutil.copy(path, folder / ("later" if place >= len(files) - newest else "lineitem") / path.name)
    return sorted((folder / "later").iterdir())


def _seen(spark: "SparkSession", folder: Path) -> None:
    for name in ("lineitem", "orders", "supplier", "nation"):
        spark.read.parquet(str(folder / name)).createOrReplaceTempView(name)


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in (folder / "lineitem").glob("*.parquet"))
