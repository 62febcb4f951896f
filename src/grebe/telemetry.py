"""What Grebe tells of its work: events of `logging`, spans of OpenTelemetry and metrics of Prometheus, all from here.

Neither package is ever imported for that. Whoever exports spans or metrics has imported the package in this process, and told it
where they go; without it nothing is told but events, and one look at `sys.modules` is all that costs. Facts are names, numbers
and URIs: never a value of the data, nor the text of somebody else's exception, which might hold one.
"""

import functools
import json
import logging
import re
import sys
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from grebe.clock import SYSTEM
from grebe.errors import GrebeError

if TYPE_CHECKING:
    pass

Fact: TypeAlias = str | int | float | Sequence[str] | None
_Counted: TypeAlias = "Callable[[_Metrics, Span, bool, float], None]"
_NANOSECONDS = 1_000_000_000
_SECONDS = (0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600)
_PLAIN = re.compile(r"[^\s\"=]+")
_LOCK = threading.Lock()


def event(logger: logging.Logger, level: int, name: str, **facts: Fact) -> None:
    """One line `event=name key=value …`. Facts that are None are left out."""
    if logger.isEnabledFor(level):
        told = (f" {key}={_text(value)}" for key, value in facts.items() if value is not None)
        logger.log(level, "event=%s%s", name, "".join(told))


class Span:
    """A piece of work while it is done: at its end it is told how it went. Facts may be added until then."""

    __slots__ = ("_counted", "_name", "_since", "_tells", "_traced", "facts")

    def __init__(
        self,
        name: str,
        facts: dict[str, Fact],
        tells: tuple[logging.Logger, int, str],
        counted: "_Counted | None" = None,
        since: float | None = None,
    ) -> None:
        self.facts = facts
        self._name = name
        self._tells = tells
        self._counted = counted
        self._since = since
        self._traced: Any = None

    def add(self, **facts: Fact) -> None:
        self.facts.update(facts)

    def begun(self, **facts: Fact) -> None:
        """Tells that it is under way, with what is known by then."""
        self.facts.update(facts)
        logger, level, what = self._tells
        event(logger, level, f"{what}_begun", **self.facts)

    def __enter__(self) -> Self:
        now = SYSTEM.monotonic()
        self._since = now if self._since is None else self._since
        if "opentelemetry.trace" in sys.modules:
            self._traced = _Traced.begun(f"grebe.{self._name}", now - self._since)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._since is not None
        seconds = SYSTEM.monotonic() - self._since
        if error is not None:
            self.facts["code"] = error.code if isinstance(error, GrebeError) else type(error).__name__
        if self._traced is not None:
            self._traced.ended(self.facts, error is None)
        if self._counted is not None and (metrics := _metrics()) is not None:
            self._counted(metrics, self, error is None, seconds)
        logger, level, what = self._tells
        event(logger, level, f"{what}_done" if error is None else f"{what}_failed", **self.facts, seconds=seconds)


def span(name: str, logger: logging.Logger, level: int = logging.DEBUG, **facts: Fact) -> Span:
    """`grebe.<name>` for traces; in the log `<name>_done` or `<name>_failed`."""
    return Span(name, facts, (logger, level, name))


def operation(logger: logging.Logger, verb: str, table: str, indexes: Sequence[str]) -> Span:
    """Of a verb on indexes. Who carries it out says when it has `begun`."""
    facts: dict[str, Fact] = {"verb": verb, "table": table, "indexes": indexes}
    return Span(verb, facts, (logger, logging.INFO, "operation"), _Metrics.operation)


def planning(logger: logging.Logger, tables: Sequence[str], since: float) -> Span:
    """Of a query over tables with indexes, begun at that time of the clock. The fact `used` names the indexes it will read."""
    facts: dict[str, Fact] = {"tables": tables}
    return Span("plan", facts, (logger, logging.DEBUG, "planning"), _Metrics.query, since)


def lookup(logger: logging.Logger, call: str, table: str) -> Span:
    facts: dict[str, Fact] = {"call": call, "table": table}
    return Span("lookup", facts, (logger, logging.DEBUG, "lookup"), _Metrics.lookup)


def requested(requests: int, read: int) -> None:
    """Of a store, outside of Spark."""
    metrics = _metrics()
    if metrics is not None:
        if requests:
            metrics.requests.inc(requests)
        if read:
            metrics.read_bytes.inc(read)


def _text(value: Fact) -> str:
    if isinstance(value, float):
        return f"{value:.6f}"
    text = str(value) if isinstance(value, str | int) else ",".join(value or ())
    # Whatever a name holds, it stays one value in one line.
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


class _Traced:
    """A span of OpenTelemetry, current while the work is done: what the work calls becomes its children."""

    def __init__(self, current: Any) -> None:
        self._current = current
        self._span = current.__enter__()

    @classmethod
    def begun(cls, name: str, ago: float) -> "_Traced | None":
        """None where nobody has said where spans go."""
        from opentelemetry import trace

        provider = trace.get_tracer_provider()
        if isinstance(provider, trace.ProxyTracerProvider):
            return None
        start = int(SYSTEM.now_ms() * 1_000_000 - ago * _NANOSECONDS)
        tracer = provider.get_tracer("grebe")
        return cls(
            tracer.start_as_current_span(name, start_time=start, record_exception=False, set_status_on_exception=False)
        )

    def ended(self, facts: dict[str, Fact], well: bool) -> None:
        from opentelemetry.trace import Status, StatusCode

        known = {f"grebe.{key}": value for key, value in facts.items() if value is not None}
        self._span.set_attributes(known)
        if not well:
            self._span.set_status(Status(StatusCode.ERROR, str(facts.get("code"))))
        self._current.__exit__(None, None, None)


class _Metrics:
    def __init__(self) -> None:
        from prometheus_client import Counter, Histogram

        self.operations: Counter = Counter("grebe_operations", "Verbs on indexes that ended", ["verb", "outcome"])
        self.seconds: Histogram = Histogram(
            "grebe_operation_seconds", "How long verbs took", ["verb"], buckets=_SECONDS
        )
        self.queries: Counter = Counter("grebe_queries", "Queries over tables with indexes that were planned", ["used"])
        self.lookups: Counter = Counter("grebe_lookups", "Lookups without Spark")
        self.requests: Counter = Counter("grebe_requests", "Requests to stores, outside of Spark")
        self.read_bytes: Counter = Counter("grebe_read_bytes", "Bytes read from stores, outside of Spark")

    def operation(self, one: Span, well: bool, seconds: float) -> None:
        verb = str(one.facts["verb"])
        self.operations.labels(verb, "ok" if well else "failed").inc()
        self.seconds.labels(verb).observe(seconds)

    def query(self, one: Span, well: bool, seconds: float) -> None:
        self.queries.labels("yes" if one.facts.get("used") else "no").inc()

    def lookup(self, one: Span, well: bool, seconds: float) -> None:
        self.lookups.inc()


def _metrics() -> _Metrics | None:
    """None where nobody has imported the package that would show them."""
    if "prometheus_client" not in sys.modules:
        return None
    with _LOCK:  # a name may be registered only once
        return _registered()


@functools.cache
def _registered() -> _Metrics:
    return _Metrics()
