"""Every aggregate function of Spark answers with indexes as without, whatever its arguments, with DISTINCT and with FILTER.

Functions come from Spark's own registry. Many stand in one query, which each index answers by itself. Metadata and views answer
only a query whose every output they know, so each is planned alone as well, and run alone where one of them answers it.
"""

import datetime
import itertools
import logging
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import grebe
from grebe.planner.decision import FromMetadata, FromView
from testbed.spark import configured
from tests.spark.served import Served, serving, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core]

COLUMNS = ["a", "b", "x", "s", "n", "d", "w", "z", "u"]
BATCH = 40
ORDERED = {
    *("first", "first_value", "last", "last_value", "any_value", "max_by", "min_by", "mode", "histogram_numeric"),
    *("approx_percentile", "percentile_approx", "hll_sketch_agg", "hll_union_agg", "approx_top_k", "count_min_sketch"),
    *("approx_top_k_accumulate", "approx_top_k_combine", "listagg", "string_agg"),
}
"""What they give hangs on the order in which rows come, or on which of two equal rows comes first: only errors are compared."""
ARGUMENTS = ["a", "a, b", "a, b, x", "1", "NULL", "a, NULL", "s"]
MORE = [
    *("b", "x", "n", "d", "w", "z", "'x'", "a + 1", "cast(a AS string)", "CAST(NULL AS BIGINT)", "t.*"),
    *(
        "a, 0.5D",
        "x, 0.5D",
        "1, a",
        "a, a",
        "s, u",
        "NULL, NULL",
        "a, NULL, b",
        "x, array(0.5D, 0.9D), 100",
        "d, w, z",
        "1, 2, 3",
    ),
]
FORMS = ["{name}(DISTINCT {arguments})", "{name}({arguments}) FILTER (WHERE b > 0)"]
MORE_FORMS = ["{name}({arguments}) FILTER (WHERE a IS NULL)", "{name}(DISTINCT {arguments}) FILTER (WHERE a > 1)"]
SHAPES = ("SELECT {} FROM t", "SELECT {} FROM t WHERE d >= DATE'2000-01-01'")
STAR = {"spark.sql.legacy.allowStarWithSingleTableIdentifierInCount": "true"}
GROUPED = "SELECT b, {} FROM t GROUP BY b"
VIEW = (
    "SELECT b, count(*), count(a), count(a, b), sum(a), min(a), max(a), avg(a), min(d), max(w), sum(x), count(DISTINCT s) "
    "FROM parquet.`{}` GROUP BY b"
)


def part(number: int) -> pa.Table:
    start = number * 8
    rows = range(start, start + 8)
    day = datetime.date(2020, 1, 1)
    return pa.table(
        {
            "a": pa.array([None if n % 5 == 0 else n // 2 for n in rows], pa.int64()),
            "b": pa.array([None if n % 7 == 3 else n % 3 for n in rows], pa.int32()),
            "x": pa.array([None if n == 2 else math.nan if n == 9 else -0.0 if n == 4 else n / 2 for n in rows]),
            "s": pa.array([None if n % 6 == 0 else f"t{n % 4}" * 20 for n in rows]),
            "n": pa.array([None if n % 4 == 1 else Decimal(n) / 4 for n in rows], pa.decimal128(10, 2)),
            "d": pa.array([day + datetime.timedelta(n) for n in rows]),
            "w": pa.array([None if n % 9 == 0 else n * 3_600_000_000 for n in rows], pa.timestamp("us", "UTC")),
            "z": pa.array([None if n % 8 == 0 else n % 2 == 0 for n in rows]),
            "u": pa.array(list(rows), pa.int64()),
        }
    )


@pytest.fixture(scope="module")
def served(spark: "SparkSession", folder: Path) -> Iterator[Served]:
    path = write(folder / "t", *(part(number) for number in range(3)))
    others = [name for name in COLUMNS if name != "a"]
    with serving(spark) as made, configured(spark, STAR):
        made.lake.table(path).create(
            grebe.Covering("covering", on="b", include=[name for name in COLUMNS if name != "b"], buckets=2),
            grebe.ZOrder("zorder", on=["a", "d"], include=[name for name in others if name != "d"]),
            grebe.Lookup("lookup", on="d"),
            grebe.Skipping(
                "skipping",
                *(grebe.MinMax(name) for name in COLUMNS),
                *(grebe.NullCount(name) for name in COLUMNS),
                *(grebe.Bloom("a"), grebe.ValueList("b"), grebe.Ngram("s"), grebe.Intervals("d")),
            ),
            grebe.Sieve("sieve", on="d", budget=0.5),
            grebe.Layout("layout", ["a > 3", "d >= DATE'2020-01-05'"]),
            grebe.Spatial("spatial", x="a", y="u", include=[name for name in others if name != "u"]),
            grebe.View("view", VIEW.format(path)),
        )
        made.view("t", path)
        yield made


INDEXES = ["covering", "zorder", "lookup", "skipping", "sieve", "layout", "spatial", "view"]


def functions_of(session: "SparkSession") -> list[str]:
    """Return the aggregate functions that Spark's registry knows."""
    registry = session._jsparkSession.sessionState().functionRegistry()
    found = registry.listFunction().iterator()
    names = []
    while found.hasNext():
        known = found.next()
        if registry.lookupFunction(known).get().getGroup() == "agg_funcs":
            names.append(known.funcName())
    assert {*FAMILY} <= {*names}
    return sorted(names)


def understood(session: "SparkSession", texts: Iterable[str], shape: str = SHAPES[0]) -> list[str]:
    """Return those that Spark can analyze; what it cannot never reaches an optimizer."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    kept = []
    for text in texts:
        try:
            session.sql(shape.format(text))
        except (PySparkException, Py4JJavaError):  # faults of Spark's own analyzer among them
            continue
        kept.append(text)
    return kept


def product(session: "SparkSession", names: Iterable[str], arguments: Sequence[str], forms: Sequence[str]) -> list[str]:
    """Return all that Spark understands; where it does not without DISTINCT and FILTER, it does not with them."""
    calls = understood(session, (f"{name}({given})" for name, given in itertools.product(names, arguments)))
    made = []
    for call in calls:
        name, _, given = call.partition("(")
        others = [form.format(name=name, arguments=given.removesuffix(")")) for form in forms]
        made += [call, *understood(session, (one for one in others if one != call))]
    return made


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    """Spark's log of what it does not understand is of no use here."""
    logger = logging.getLogger("SQLQueryContextLogger")
    before = logger.disabled
    logger.disabled = True
    yield
    logger.disabled = before


def plain(value: Any) -> Any:
    """Return a value as it can be compared: floating point numbers are summed in another order, and sets have none."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else float(f"{value:.9g}")
    if isinstance(value, list | tuple):
        return sorted((plain(one) for one in value), key=repr)
    return value


def is_ordered(text: str) -> bool:
    name = text.partition("(")[0]
    return name in ORDERED or "sketch" in name


def outcome(frame: "DataFrame", texts: Sequence[str]) -> list[Any] | str:
    """Return by group and text what was answered, or the condition of the error."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        rows = frame.collect()
    except PySparkException as problem:
        return str(problem.getCondition() or type(problem).__name__)
    except Py4JJavaError as problem:
        return str(problem.java_exception.getClass().getName())
    keys = len(rows[0]) - len(texts) if rows else 0
    known = [
        [None if is_ordered(text) else plain(value) for text, value in zip(texts, row[keys:], strict=True)]
        for row in rows
    ]
    return sorted(([tuple(row[:keys]), answers] for row, answers in zip(rows, known, strict=True)), key=repr)


def different(texts: Sequence[str], found: Any, expected: Any) -> list[Any]:
    """Return which of a batch differ, with both answers."""
    if isinstance(found, str) or isinstance(expected, str) or len(found) != len(expected):
        return [found, expected]
    pairs = (
        (keys, text, one, other)
        for (keys, left), (_, right) in zip(found, expected, strict=True)
        for text, one, other in zip(texts, left, right, strict=True)
    )
    return [pair for pair in pairs if pair[2] != pair[3]]


class Compared:
    """Aggregates of one shape of query, with and without indexes. Counts what was compared."""

    def __init__(self, served: Served, shape: str, texts: Sequence[str]) -> None:
        self.served = served
        self.shape = shape
        self.texts = list(texts)
        self.compared = 0
        self.answered: dict[str, str] = {}
        """By text, what answered it alone: `metadata` or `view`."""
        served.lake.enabled = False
        try:
            self.failing = {text: said for text in self._failing() if isinstance(said := self._run([text]), str)}
            self.texts = [text for text in self.texts if text not in self.failing]
            self.batches = [self.texts[i : i + BATCH] for i in range(0, len(self.texts), BATCH)]
            self.expected: list[Any] = [self._run(batch) for batch in self.batches]
        finally:
            served.lake.enabled = True

    def _run(self, texts: Sequence[str]) -> list[Any] | str:
        return outcome(self.served.spark.sql(self.shape.format(", ".join(texts))), texts)

    def _failing(self) -> Iterator[str]:
        """Those of a batch that fails, since one spoils it for all."""
        pending: list[list[str]] = [self.texts[i : i + BATCH] for i in range(0, len(self.texts), BATCH)]
        while pending:
            some = pending.pop()
            if isinstance(self._run(some), str):
                if len(some) == 1:
                    yield some[0]
                else:
                    pending += [some[: len(some) // 2], some[len(some) // 2 :]]

    def together(self, index: str) -> None:
        """Many in one query, which this index alone may answer."""
        with self.served.lake.only(index):
            for batch, expected in zip(self.batches, self.expected, strict=True):
                found = self._run(batch)
                assert found == expected, (index, self.shape, different(batch, found, expected))
                self.compared += len(batch)
            for text, expected in self.failing.items():
                assert self._run([text]) == expected, (index, self.shape, text)
                self.compared += 1

    def alone(self, index: str) -> None:
        """Each in a query of its own, run where metadata or a view answers it."""
        for batch, expected in zip(self.batches, self.expected, strict=True):
            for place, text in enumerate(batch):
                with self.served.lake.only(index):
                    self.served._decisions.clear()
                    frame = self.served.spark.sql(self.shape.format(text))
                    frame._jdf.queryExecution().optimizedPlan()
                    made = [one for decision in self.served._decisions[-1:] for one in decision.choices]
                    self.compared += 1
                    if any(isinstance(one, FromMetadata | FromView) for one in made):
                        wanted = [[keys, [answers[place]]] for keys, answers in expected]
                        assert outcome(frame, [text]) == wanted, (index, self.shape, text)
                        self.answered[text] = "view" if isinstance(made[0], FromView) else "metadata"


def test_every_aggregate_function_answers_with_each_index_as_without(served: Served) -> None:
    texts = product(served.spark, functions_of(served.spark), ARGUMENTS[:3], ())
    compared = Compared(served, SHAPES[0], texts)
    for index in INDEXES:
        compared.together(index)
    assert compared.compared > 300


FAMILY = ["count", "min", "max", "sum", "avg", "approx_count_distinct"]
NOT_ON_THE_LIST = [
    "count(a, b)",
    "count(t.*)",
    "count(DISTINCT a)",
    "count(DISTINCT a, b)",
    "count(a) FILTER (WHERE b > 0)",
]


def test_metadata_answers_what_is_on_its_list_and_nothing_else(served: Served) -> None:
    texts = [
        *product(served.spark, FAMILY, [*ARGUMENTS, "x", "d", "w", "n"], FORMS),
        "count(*)",
        "count(t.*)",
        "count(a + 1)",
    ]
    compared = Compared(served, SHAPES[0], [*dict.fromkeys(texts)])
    compared.alone("skipping")
    assert {text for text, by in compared.answered.items() if by == "metadata"} == {
        *("count(*)", "count(1)", "count(a)", "count(s)", "count(x)", "count(d)", "count(w)", "count(n)"),
        *(f"{name}({given}{column})" for name in ("min", "max") for given in ("", "DISTINCT ") for column in "adw"),
    }
    assert not set(NOT_ON_THE_LIST) & set(compared.answered)


def test_a_view_answers_groups_as_the_table_does(served: Served) -> None:
    texts = [*product(served.spark, FAMILY, ARGUMENTS[:3], FORMS), "count(*)"]
    compared = Compared(served, GROUPED, texts)
    compared.alone("view")
    assert {"count(*)", "count(a)", "count(a, b)", "sum(a)", "avg(a)"} <= set(compared.answered)
    assert "count(a, b, x)" not in compared.answered


MADE_OF_AGGREGATES = (
    "SELECT count(a) + count(b), max(a) - min(a) FROM t",
    "SELECT count(a) AS a, a FROM t GROUP BY a",
    "SELECT count(a) FROM t HAVING count(a, b) > 3",
    "SELECT max(a) FROM t HAVING count(*) > 100",
    "SELECT b, count(a), count(a, b) FROM t GROUP BY b WITH ROLLUP",
    "SELECT b, z, count(a, x), grouping(b) FROM t GROUP BY GROUPING SETS ((b), (z), (b, z), ())",
    "SELECT count(a) OVER (PARTITION BY b), max(a) OVER () FROM t",
    "SELECT count(*) FROM t LIMIT 0",
    "SELECT count(a) FROM (SELECT a FROM t ORDER BY a LIMIT 5)",
    "SELECT count(a), max(a) FROM (SELECT DISTINCT a FROM t)",
    "SELECT count(a) FROM (SELECT explode(array(a, b)) AS a FROM t)",
    "SELECT (SELECT count(a) FROM t), (SELECT count(a, b) FROM t), (SELECT max(a) FROM t WHERE b = 1)",
    "SELECT count(a) FROM t UNION ALL SELECT count(a, b) FROM t UNION ALL SELECT max(a) FROM t",
    "SELECT min(w), max(w), min(x) = 0, max(x), min(s), max(s), min(n), max(z) FROM t",
    "SELECT count(a), max(d) FROM t WHERE false",
    "SELECT count(if(b > 0, a, NULL)), count(nullif(a, 1)) FROM t",
    # Spark makes one plan of both subqueries, so that one object of the plan stands in two places.
    "SELECT (SELECT count(a) FROM t WHERE d < DATE'2020-01-05') + (SELECT count(a) FROM t WHERE d < DATE'2020-01-05')",
    "SELECT a FROM t WHERE b > (SELECT max(a) FROM t WHERE b = 1) OR a < (SELECT max(a) FROM t WHERE b = 1)",
    "SELECT x FROM t WHERE a = (SELECT min(a) FROM t WHERE b = 1) AND b = (SELECT min(a) FROM t WHERE b = 1)",
)


@pytest.mark.parametrize("query", MADE_OF_AGGREGATES)
def test_queries_made_of_aggregates_answer_as_without_indexes(served: Served, query: str) -> None:
    served.same_rows(query)


def test_one_frame_that_is_aggregated_twice_gives_both_answers(served: Served) -> None:
    """Both aggregates read the same relation, as one object of the plan."""

    def twice(first: str, second: str) -> Any:
        def made(session: "SparkSession") -> "DataFrame":
            frame = session.table("t")
            return frame.selectExpr(first).union(frame.selectExpr(second))

        return made

    for first, second in itertools.permutations(["count(a)", "count(a, b)", "max(u)"], 2):
        served.same_rows(twice(first, second))


def test_filters_of_one_frame_do_not_meet(served: Served) -> None:
    def made(session: "SparkSession") -> "DataFrame":
        frame = session.table("t")
        early = frame.filter("d < DATE'2020-01-05'").selectExpr("count(a)")
        return early.union(frame.filter("d >= DATE'2020-01-20'").selectExpr("count(a)")).union(
            frame.selectExpr("max(a)")
        )

    served.same_rows(made)


def test_the_other_side_of_dynamic_pruning_keeps_its_filter(served: Served, tmp_path: Path) -> None:
    for day in range(4):
        write(tmp_path / "facts" / f"day={day}", {"v": range(10 * day, 10 * day + 10)})
    days = write(tmp_path / "days", *({"day": [day], "open": [day % 2]} for day in range(4)))
    served.view("facts", tmp_path / "facts")
    served.view("days", days)
    served.lake.table(days).create(grebe.Skipping("days", grebe.MinMax("day"), grebe.MinMax("open")))
    for newest in ("max(day)", "count(day)", "count(*)"):
        seen = served.same_rows(
            f"SELECT * FROM facts JOIN (SELECT {newest} AS day FROM days WHERE open = 0) newest ON facts.day = newest.day"
        )
        assert sum(seen.rows.values()) == 10
        seen = served.same_rows(
            f"SELECT * FROM facts JOIN (SELECT {newest} - 1 AS day FROM days) newest ON facts.day = newest.day"
        )
        assert sum(seen.rows.values()) == 10


@pytest.fixture(scope="module")
def everything(served: Served) -> list[Compared]:
    """All functions in all forms, of each shape of query, with the answers without indexes."""
    texts = product(served.spark, functions_of(served.spark), [*ARGUMENTS, *MORE], [*FORMS, *MORE_FORMS])
    return [Compared(served, shape, texts) for shape in (*SHAPES, GROUPED)]


@pytest.mark.soak
@pytest.mark.parametrize("index", INDEXES)
def test_the_whole_product_of_aggregates_and_arguments(
    everything: list[Compared], index: str, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = []
    for compared in everything:
        compared.compared, compared.answered = 0, {}
        compared.together(index)
        compared.alone(index)
        counts.append((len(compared.texts), len(compared.failing), compared.compared, len(compared.answered)))
    with capsys.disabled():
        sys.stderr.write(
            f"\n{index}: aggregates, failing ones, comparisons, answers without a scan, by shape: {counts}\n"
        )
