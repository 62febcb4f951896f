"""Indexes that follow a Structured Streaming query: after its micro-batches, the tables that it writes to are refreshed.

Never in the way of the stream: refreshes run one at a time in a thread of their own, batches that come meanwhile are covered by one
refresh afterwards, and a refresh that fails is told of and tried again with the next batch. Queries are right all the while, since
what an index does not cover yet is read directly.
"""

import logging
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from grebe import telemetry
from grebe.clock import SYSTEM
from grebe.errors import InvalidConfig, Unsupported
from grebe.session.lake_table import LakeTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_logger = logging.getLogger("grebe.session")
_SINK_AT_PATH = re.compile(r"\w+\[(.+)\]")
_NAME = re.compile(r"[^.\s]+(\.[^.\s]+)+")
_WRITTEN = "addBatch"
"""A step of a micro-batch that only those have which were written."""

WriteBatch = Callable[["DataFrame", int], object]
OpenTables = Callable[[], Sequence[LakeTable]]


class Refreshes:
    """Refreshes of some tables, which are opened by the first of them: a stream may be about to make them."""

    def __init__(self, open_tables: OpenTables) -> None:
        self._open = open_tables
        self._tables: Sequence[LakeTable] = ()
        self.done = 0
        self.last_error: Exception | None = None

    def run(self) -> bool:
        """Whether it succeeded. What fails is logged, but not again each time that it fails in the same way."""
        try:
            self._tables = self._tables or self._open()
            for table in self._tables:
                table.refresh()
        except Exception as problem:  # noqa: BLE001 - whatever fails, the stream goes on; it is kept and logged
            if type(problem) is not type(self.last_error):
                code = getattr(problem, "code", type(problem).__name__)
                # The text of a foreign exception may hold a value of the data; `last_error` has it.
                telemetry.event(_logger, logging.WARNING, "refresh_failed", code=code)
            self.last_error = problem
            return False
        self.last_error = None
        self.done += 1
        return True


class AfterBatch:
    """What `lake.refreshing` makes of a function for `foreachBatch`: it writes the batch, and then the tables are refreshed."""

    def __init__(self, write: WriteBatch, open_tables: OpenTables) -> None:
        self._write = write
        self._refreshes = Refreshes(open_tables)

    def __call__(self, frame: "DataFrame", batch_id: int) -> None:
        self._write(frame, batch_id)
        self._refreshes.run()

    @property
    def last_error(self) -> Exception | None:
        """Why the last refresh failed; None if it did not. The batch was written all the same."""
        return self._refreshes.last_error


class Following:
    """What `lake.refresh_on` returns. Ends by itself when the query has ended and its last batch has been refreshed after."""

    def __init__(
        self, session: "SparkSession", query: "StreamingQuery", open_tables: OpenTables, every: float | None = None
    ) -> None:
        if every is not None and not 0 < every < float("inf"):
            raise InvalidConfig(f"refresh_on: every={every!r} is no number of seconds above 0", detail="VALUE")
        self._query = query
        self._streams = session.streams
        self._every = every or 0.0
        self._refreshes = Refreshes(open_tables)
        self._change = threading.Condition()
        self._covered = -1
        """The newest batch that a refresh began after and succeeded."""
        self._asked = 1  # for batches that were written before anybody listened
        self._answered = 0
        self._in_haste = self._query_ended = self._stopped = self._over = False
        self._listener = _listener(str(query.runId), self._batch_written, self._ended)
        self._streams.addListener(self._listener)
        if not query.isActive:
            self._ended()  # nobody else will say so
        self._thread = threading.Thread(target=self._follow, name="grebe following", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"Following(query={str(self._query.id)!r}, refreshes={self.refreshes}, last_error={self.last_error!r})"

    @property
    def last_error(self) -> Exception | None:
        """Why the last refresh failed; None if it did not."""
        return self._refreshes.last_error

    @property
    def refreshes(self) -> int:
        """So many have succeeded."""
        return self._refreshes.done

    def wait(self, timeout: float | None = None) -> bool:
        """Until every batch that is written by now is refreshed after, at most so many seconds. Whether they all are: what failed
        before is tried once more."""
        newest = self._newest()
        with self._change:
            if newest > self._covered:
                self._asked += 1
                self._in_haste = True
                self._change.notify_all()
            asked = self._asked
            self._change.wait_for(lambda: newest <= self._covered or self._answered >= asked or self._over, timeout)
            return newest <= self._covered

    def stop(self) -> None:
        """No more refreshes; waits for one under way. The query goes on."""
        with self._change:
            self._stopped = True
            self._change.notify_all()
        self._thread.join()

    def _batch_written(self) -> None:
        with self._change:
            self._asked += 1
            self._change.notify_all()

    def _ended(self) -> None:
        with self._change:
            self._asked += 1  # its last batch may not have been told of
            self._query_ended = True
            self._change.notify_all()

    def _follow(self) -> None:
        try:
            while (asked := self._next()) is not None:
                begun, newest = SYSTEM.monotonic(), self._newest()
                fresh = newest <= self._covered or self._refreshes.run()
                with self._change:
                    self._answered = asked
                    self._covered = max(self._covered, newest) if fresh else self._covered
                    self._in_haste = False
                    self._change.notify_all()
                    rest = begun + self._every - SYSTEM.monotonic()
                    self._change.wait_for(lambda: self._in_haste or self._query_ended or self._stopped, max(rest, 0))
        finally:
            with self._change:
                self._over = True
                self._change.notify_all()
            self._streams.removeListener(self._listener)

    def _next(self) -> int | None:
        """What is asked for by now, once anything is; None if nothing will be any more."""
        with self._change:
            self._change.wait_for(lambda: self._asked > self._answered or self._query_ended or self._stopped)
            return self._asked if self._asked > self._answered and not self._stopped else None

    def _newest(self) -> int:
        """The newest batch that the query has written; -1 if there is none."""
        return max((one["batchId"] for one in self._query.recentProgress if _WRITTEN in one["durationMs"]), default=-1)


def sink_of(query: "StreamingQuery") -> str:
    """The path or the name of the table that the query writes to. Raises `Unsupported` where it does not say."""
    progress: Mapping[str, Any] | None = query.lastProgress
    said = "" if progress is None else str(progress["sink"]["description"])
    if found := _SINK_AT_PATH.fullmatch(said):
        return found[1]
    if _NAME.fullmatch(said):
        return said
    raise Unsupported(
        f"the query does not say which table it writes to ({said or 'nothing written yet'}); name it: refresh_on(query, table)",
        detail="SINK",
    )


def _listener(run: str, written: Callable[[], None], ended: Callable[[], None]) -> Any:
    from pyspark.sql.streaming.listener import StreamingQueryListener

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
            """It runs already."""

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
            if str(event.progress.runId) == run and _WRITTEN in event.progress.durationMs:
                written()

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802 - Spark's name
            """There is nothing to do either."""

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
            if str(event.runId) == run:
                ended()

    return Listener()
