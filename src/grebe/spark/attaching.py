"""What holds a session and Grebe together: the rule in its optimizer, the planner that answers it, what the user says to both."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from grebe.clock import SYSTEM
from grebe.config import Config
from grebe.errors import Unsupported
from grebe.files import FileList
from grebe.log.states import TableState
from grebe.planner.inquiry import Inquiry
from grebe.planner.observing import HearsQueries, Seat
from grebe.planner.query import Query
from grebe.planner.selectivity import Statistics
from grebe.planner.tables import KnownIndex, KnownTable
from grebe.spark.planning import Planned, Planning
from grebe.spark.queries import frame_of_query, require_query
from grebe.spark.shim import Shim, load
from grebe.spark.source import arrow_bytes
from grebe.spark.tables import Found, Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


Statement = Callable[["Attached", str, str], str]
"""What to do with a statement on indexes of a session (`parse` or `run`, and its text), and what came of it, as JSON."""


_LISTENS_MS = 10_000


class Attached:
    """One JVM session with the rule in it."""

    def __init__(self, session: "SparkSession", shim: Shim, planning: Planning) -> None:
        self.session = session
        self._shim = shim
        self._planning = planning

    @property
    def config(self) -> Config:
        return self._planning.config

    @property
    def inquiry(self) -> Inquiry:
        return self._planning.inquiry

    @property
    def enabled(self) -> bool:
        return bool(self._shim.bridge.isEnabled(self.session._jsparkSession))

    @enabled.setter
    def enabled(self, on: bool) -> None:
        self._shim.bridge.setEnabled(self.session._jsparkSession, on)

    def detach(self) -> None:
        self._shim.bridge.detach(self.session._jsparkSession)

    def changed(self, table: str, location: str | None = None) -> None:
        if location is not None:
            self._planning.tables.located(table, location)
        self._planning.tables.changed(table)

    def tables(self) -> list[str]:
        """Those whose log is gone are left out."""
        return sorted(found.table.uri for found in self._planning.tables.known() if found.state.table is not None)

    def heard(self) -> list[Seat]:
        """The tables of queries that have run, once all was heard of those that have by now."""
        self._shim.bridge.listen(self.session._jsparkSession, _LISTENS_MS)
        return list(self._planning.seats.values())

    def find(self, roots: Sequence[str]) -> KnownTable | None:
        found = self._planning.tables.find(roots)
        return None if found is None else found.table

    def log_of(self, uri: str) -> str:
        """Where the log of the table lies, or would."""
        return self._planning.tables.seat([uri]).place

    def indexes(self, roots: Sequence[str]) -> tuple[KnownIndex, ...]:
        """Of the table that these roots are."""
        found = self.find(roots)
        return () if found is None else found.indexes

    def _suppose(self, token: str, supposed: Mapping[str, Found] | None) -> None:
        self._planning.suppose(token, supposed)
        if supposed is not None:
            self._shim.bridge.lookAgain()  # also where there was nothing a moment ago

    @contextmanager
    def as_if(
        self,
        uri: str,
        files: FileList,
        ids: npt.NDArray[np.uint32],
        indexes: Sequence[KnownIndex],
        believed: Statistics,
        rows: float,
    ) -> Iterator[Found]:
        """The table as if it had just these files under these ids, and these indexes; with what is known of its rows."""
        key = f"{uri}#{SYSTEM.new_id()}"
        sizes = np.zeros(int(ids.max()) + 1 if len(ids) else 0, np.int64)
        sizes[ids] = files.table["size"].to_numpy()
        real = self._planning.tables.find([uri])
        self._shim.bridge.snapshot(key).add(*arrow_bytes(files, ids), b"")
        try:
            state = TableState() if real is None else replace(real.state, seen=None)
            known = KnownTable(uri, 0, tuple(indexes), sizes, key, believed, rows)
            yield Found(known, state, "", key, len(files))
        finally:
            self._shim.bridge.forget(key)

    @contextmanager
    def saying(self, name: str, values: Sequence[str], narrowing: bool = False) -> Iterator[None]:
        """A property of this thread, which Spark hands on to the thread of the JVM that plans for it. What was said around it holds
        too: these values come on top of it, or are `narrowing` it."""
        context = self._shim.context
        before = context.getLocalProperty(name)
        outer = [] if before is None else before.split("\n")
        said = [value for value in values if before is None or value in outer] if narrowing else [*outer, *values]
        context.setLocalProperty(name, "\n".join(said))
        try:
            yield
        finally:
            context.setLocalProperty(name, before)

    def question(self, sql: str, supposed: Mapping[str, Found]) -> Query | None:
        """The query as the planner sees it, its tables taken for these (by their roots); None if it reads none. Raises
        `InvalidStatement` for a command, which is not run."""
        frame = frame_of_query(self.session, sql)
        token = SYSTEM.new_id()
        self._planning.await_under(token)
        self._suppose(token, supposed)
        try:
            with self.saying("grebe.token", [token]):
                frame._jdf.queryExecution().optimizedPlan()
        finally:
            planned = self._planning.collected(token)
            self._planning.suppose(token, None)
        return planned[-1].query if planned else None

    def explain(
        self, frame: "DataFrame", supposed: Mapping[str, Found] | None = None
    ) -> tuple[dict[str, Any], list[Planned]]:
        """Plans before and after, roots of cached tables, what was read if it ran; and what was decided on the way. `supposed`:
        tables as they are to be taken for, by their roots; the plan stays as it is."""
        token = SYSTEM.new_id()
        java_frame = getattr(frame, "_jdf", None)
        if java_frame is None:
            raise Unsupported(
                "a frame of Spark Connect hides its plan; give the query as SQL text", detail="SPARK_CONNECT"
            )
        require_query(self.session, frame)
        self._planning.await_under(token)
        self._suppose(token, supposed)
        try:
            with self.saying("grebe.token", [token]):
                plans = json.loads(self._shim.bridge.plans(java_frame))
        finally:
            planned = self._planning.collected(token)
            self._planning.suppose(token, None)
        actual = json.loads(self._shim.bridge.actual(java_frame))
        plans["actual"] = actual if actual["milliseconds"] >= 0 else None
        return plans, planned


def attached(
    session: "SparkSession", config: Config, statement: Statement, hears: HearsQueries | None = None
) -> Attached:
    """Puts the rule into the session, once; a second call brings other settings for everyone. `session` is a classic one.
    `statement` answers for the statements on indexes of all sessions, `hears` is told of every query of theirs that has run."""
    shim = load(session)
    if shim.planning is None:
        shim.planning = planning = Planning(shim, Tables(session, shim, config), config)
        shim.answer_with(
            lambda question: planning.answer(
                question, lambda of, *asked: statement(Attached(of, shim, planning), *asked)
            )
        )
    shim.planning.configure(config)
    shim.planning.record(hears)
    shim.bridge.attach(session._jsparkSession)
    shim.bridge.setEnabledByDefault(config.enabled)
    shim.bridge.setEnabled(session._jsparkSession, config.enabled)
    return Attached(session, shim, shim.planning)


def classic(session: "SparkSession") -> "SparkSession":
    """The session itself, or that of the Spark Connect server in this process which answers for it."""
    if getattr(session, "_jsparkSession", None) is not None:
        return session
    from py4j.protocol import Py4JError
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context: Any = SparkContext._active_spark_context
    jvm: Any = SparkContext._jvm
    try:
        client: Any = getattr(session, "client")  # noqa: B009 - only a session of Spark Connect has one
        service = jvm.org.apache.spark.sql.connect.service.SparkConnectService
        holder = service.getOrCreateIsolatedSession(client._user_id or "", client._session_id, jvm.scala.Option.empty())
        return SparkSession(context, holder.session())
    except (AttributeError, TypeError, Py4JError) as problem:
        raise Unsupported(
            "this is a session of a remote Spark Connect server; attach where that server runs", detail="NO_JVM"
        ) from problem
