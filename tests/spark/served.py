"""A Spark session whose indexes always seem worth it, and queries compared with and without them."""

import contextlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grebe
from grebe.planner.choose import choose
from grebe.planner.cost import Rates
from grebe.planner.decision import Decision
from testbed.spark import configured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EAGER = Rates(
    local_open=0.0,
    remote_open=0.0,
    remote_content_open=0.0,
    task=0.0,
    stand_in=0.0,
    doubt=-0.999,
    margin=-1e9,
    pruned_unit_rows=1.0,
    curve_unit_rows=1.0,
    inquiry=0.0,
    entry=0.0,
)
"""What an index costs is next to nothing, so that these tests do not hang on the cost model: whatever can serve does."""
LENIENT = grebe.Config(hybrid_max_appended=1.0, hybrid_max_deleted=1.0)
"""However stale an index is, it serves."""
NO_BROADCAST = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
NOT_ADAPTIVE = {"spark.sql.adaptive.enabled": "false"}


@dataclass(frozen=True)
class Seen:
    """What a query gave and how it was carried out."""

    rows: Counter[str]
    used: list[str]
    nodes: list[str]
    """Of the physical plan, its subqueries included, as it was carried out in the end."""

    @property
    def exchanges(self) -> int:
        return sum(node.startswith("Exchange ") for node in self.nodes)

    @property
    def sorts(self) -> int:
        return sum(node.startswith("Sort ") for node in self.nodes)

    @property
    def text(self) -> str:
        return "\n".join(self.nodes)


class Served:
    """Queries of one session, with and without indexes. A query is SQL, or a function from the session to a frame."""

    def __init__(self, session: "SparkSession", lake: "grebe.Lake", decisions: list[Decision]) -> None:
        self.spark = session
        self.lake = lake
        self._decisions = decisions
        self._last: Any = None

    def frame(self, query: Any) -> "DataFrame":
        made: DataFrame = self.spark.sql(query) if isinstance(query, str) else query(self.spark)
        return made

    def run(self, query: Any) -> Seen:
        before = self.counters()
        self._decisions.clear()
        frame = self._last = self.frame(query)
        rows = multiset(frame.collect())
        after = self.counters()
        assert after["failed"] == before["failed"], after["last_failure"]
        used = self._decisions[-1].used if after["rewritten"] > before["rewritten"] else ()
        return Seen(rows, sorted(used), executed(frame))

    def plain(self, query: Any) -> Seen:
        self.lake.enabled = False
        try:
            frame = self.frame(query)
            return Seen(multiset(frame.collect()), [], executed(frame))
        finally:
            self.lake.enabled = True

    def same_rows(self, query: Any) -> Seen:
        """The same rows with indexes as without. Gives what was seen with them."""
        seen, expected = self.run(query), self.plain(query)
        assert seen.rows == expected.rows, _difference(seen.rows, expected.rows) + seen.text
        return seen

    def same(self, query: Any, *used: str) -> Seen:
        """The same rows with indexes as without, and exactly these are used. Gives what was seen with them."""
        seen = self.same_rows(query)
        assert seen.used == sorted(used), (seen.used, self.reasons(query), seen.text)
        return seen

    def reasons(self, query: Any) -> dict[str, str]:
        return {reason.index: str(reason.code) for reason in self.lake.why_not(self.frame(query))}

    def read(self) -> dict[str, int]:
        """Files and bytes that the last query with indexes has read."""
        return dict(json.loads(self.lake._spark._shim.bridge.actual(self._last._jdf)))

    def plan(self) -> Any:
        """How the last query with indexes was carried out."""
        return self._last._jdf.queryExecution().executedPlan()

    @property
    def decision(self) -> Decision:
        """Of the last query with indexes."""
        return self._decisions[-1]

    def counters(self) -> dict[str, Any]:
        return dict(json.loads(self.lake._spark._shim.bridge.counters()))

    def view(self, name: str, folder: Path | str) -> None:
        self.spark.read.parquet(str(folder)).createOrReplaceTempView(name)


@contextlib.contextmanager
def serving(session: "SparkSession", config: grebe.Config = LENIENT) -> Iterator[Served]:
    """Attached, with broadcasts off; detached afterwards."""
    decisions: list[Decision] = []

    def eagerly(*arguments: Any, **named: Any) -> Decision:
        decisions.append(choose(*arguments, **named, rates=EAGER))
        return decisions[-1]

    with pytest.MonkeyPatch.context() as patched, configured(session, NO_BROADCAST):
        patched.setattr("grebe.spark.planning.choose", eagerly)
        lake = grebe.attach(session, config)
        try:
            yield Served(session, lake, decisions)
        finally:
            lake.enabled = True
            if config.record_workload:
                lake._recorded().clear()  # nobody else is to be advised on these
            lake.detach()


def write(folder: Path, *files: pa.Table | Mapping[str, Any], **options: Any) -> str:
    """Parquet files in a folder, added to those that are there."""
    folder.mkdir(parents=True, exist_ok=True)
    start = len(list(folder.iterdir()))
    for number, content in enumerate(files, start):
        table = content if isinstance(content, pa.Table) else pa.table(dict(content))
        pq.write_table(table, folder / f"part-{number:03d}.parquet", **options)
    return str(folder)


def multiset(rows: Iterable[Any]) -> Counter[str]:
    return Counter(map(repr, rows))


def executed(frame: "DataFrame") -> list[str]:
    return list(_nodes(frame._jdf.queryExecution().executedPlan()))


def _nodes(plan: Any) -> Iterator[str]:
    """Each node as one line of text, also those that Spark hides while it adapts a plan. What is reused is there once."""
    kind = plan.getClass().getSimpleName()
    if kind == "AdaptiveSparkPlanExec":
        yield from _nodes(plan.executedPlan())
    elif kind.endswith("QueryStageExec"):
        yield from _nodes(plan.plan())
    else:
        yield str(plan.simpleString(25))
        for below in (plan.children(), plan.subqueries()):
            for number in range(below.size()):
                yield from _nodes(below.apply(number))


def _difference(one: Counter[str], other: Counter[str]) -> str:
    more, fewer = one - other, other - one
    shown = [f"too many: {dict(more.most_common(5))}", f"missing: {dict(fewer.most_common(5))}"]
    return f"{more.total()} too many, {fewer.total()} missing\n" + "\n".join(shown) + "\n"
