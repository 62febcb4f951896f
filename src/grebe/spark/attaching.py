"""What holds a session and Grebe together: the rule in its optimizer, the planner that answers it, and what the user says to both."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from grebe.clock import SYSTEM
from grebe.config import Config
from grebe.errors import Unsupported
from grebe.planner.tables import KnownTable
from grebe.spark.planning import Planned, Planning
from grebe.spark.shim import Shim, load
from grebe.spark.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Attached:
    """One JVM session with the rule in it."""

    def __init__(self, session: "SparkSession", java_session: Any, shim: Shim, planning: Planning) -> None:
        self._session = session
        self._java_session = java_session
        self._shim = shim
        self._planning = planning

    @property
    def enabled(self) -> bool:
        return bool(self._shim.bridge.isEnabled())

    @enabled.setter
    def enabled(self, on: bool) -> None:
        self._shim.bridge.setEnabled(on)

    def detach(self) -> None:
        self._shim.bridge.detach(self._java_session)

    def changed(self, table: str, location: str | None = None) -> None:
        if location is not None:
            self._planning.tables.located(table, location)
        self._planning.tables.changed()

    def tables(self) -> list[str]:
        return sorted(found.table.uri for found in self._planning.tables.known())

    def find(self, roots: Sequence[str]) -> KnownTable | None:
        found = self._planning.tables.find(roots)
        return None if found is None else found.table

    @contextmanager
    def saying(self, name: str, values: Sequence[str]) -> Iterator[None]:
        """A property of this thread, which Spark hands on to the thread of the JVM that plans for it."""
        context = self._shim.context
        before = context.getLocalProperty(name)
        context.setLocalProperty(name, "\n".join([*(before.split("\n") if before else ()), *values]))
        try:
            yield
        finally:
            context.setLocalProperty(name, before)

    def explain(self, frame: "DataFrame") -> tuple[dict[str, Any], list[Planned]]:
        """Plans before and after, roots of cached tables, what was read if it ran; and what was decided on the way."""
        token = SYSTEM.new_id()
        java_frame = frame._jdf
        self._planning.await_under(token)
        try:
            with self.saying("grebe.token", [token]):
                plans = json.loads(self._shim.bridge.plans(java_frame))
        finally:
            planned = self._planning.collected(token)
        actual = json.loads(self._shim.bridge.actual(java_frame))
        plans["actual"] = actual if actual["milliseconds"] >= 0 else None
        return plans, planned


def attached(session: "SparkSession", config: Config) -> Attached:
    """Puts the rule into the session, once; a second call takes over with its own settings."""
    shim = load(session)
    planning = Planning(session, shim, Tables(session, shim, config), config)
    shim.answer_with(planning.answer)
    java_session = _java_session(session)
    shim.bridge.attach(java_session)
    shim.bridge.setEnabled(config.enabled)
    return Attached(session, java_session, shim, planning)


def _java_session(session: "SparkSession") -> Any:
    found = getattr(session, "_jsparkSession", None)
    if found is None:
        raise Unsupported("attach takes a classic Spark session", detail="SPARK_CONNECT")
    return found
