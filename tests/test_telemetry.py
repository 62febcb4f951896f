"""What is told of work: one event a line, spans where somebody takes them, metrics where somebody shows them."""

import logging
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import REGISTRY

import grebe
from grebe import telemetry
from grebe.clock import SYSTEM, SimulatedClock
from grebe.errors import IndexNotFound, StoreUnreachable
from grebe.log.commit import Log, Proposal
from grebe.log.entry import ContentFile, IndexChanged, Verb
from grebe.log.operation import Running
from grebe.maintenance.cancel import cancel
from grebe.maintenance.delete import delete, restore
from grebe.maintenance.garbage import Limits
from grebe.maintenance.operation import carry_out
from grebe.maintenance.vacuum import vacuum
from grebe.maintenance.verify import verify
from grebe.store.memory import MemoryStore
from tests.log.worlds import create, new_log, register
from tests.project.tree import ROOT

FACT = r'[a-z_]+=(?:[^\s"=]+|"(?:[^"\\]|\\.)*")'
LINE = re.compile(rf"event=[a-z_]+(?: {FACT})*")
LOGGER = logging.getLogger("grebe.tests")


@pytest.fixture
def log() -> Log:
    clock = SimulatedClock()
    made = new_log(MemoryStore("log", clock), clock)
    register(made, "a", "b")
    create(made)
    return made


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """A provider as an application configures it; really setting it would hold for the whole process."""
    taken = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(taken))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return taken


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, "grebe")
    return caplog


def lines(told: pytest.LogCaptureFixture, event: str) -> list[dict[str, str]]:
    found = []
    for record in told.records:
        text = record.getMessage()
        if text.startswith(f"event={event} "):
            assert LINE.fullmatch(text), text
            found.append(dict(fact.split("=", 1) for fact in re.findall(FACT, text)))
    return found


def metric(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def rewriting(log: Log) -> None:
    def work(running: Running) -> Proposal:
        new = ContentFile(f"{running.folder('by_customer')}/new.gix", 5, rows=10)
        log.store.put(new.path, b"12345")
        return lambda state: [IndexChanged("by_customer", running.version, (new,))]

    carry_out(log, Verb.REFRESH, ["by_customer"], work)


@pytest.fixture
def table(tmp_path: Path) -> str:
    folder = tmp_path / "people"
    folder.mkdir()
    pq.write_table(pa.table({"name": ["a secret", "another"], "n": [1, 2]}), folder / "one.parquet")
    return str(folder)


def test_a_verb_tells_when_it_begins_and_what_it_has_written(log: Log, told: pytest.LogCaptureFixture) -> None:
    rewriting(log)
    (begun,), (done,) = lines(told, "operation_begun"), lines(told, "operation_done")
    assert {record.levelno for record in told.records} == {logging.INFO}
    assert begun["verb"] == done["verb"] == "refresh"
    assert begun["indexes"] == "by_customer"
    assert log.state.table is not None
    assert begun["table"] == done["table"] == log.state.table.uri
    assert len(done["operation"]) == 32
    assert begun["operation"] == done["operation"]
    assert (done["files"], done["rows"], done["bytes"]) == ("1", "10", "5")
    assert float(done["seconds"]) >= 0


def test_a_verb_that_fails_tells_the_code_and_no_more_of_the_error(
    log: Log, told: pytest.LogCaptureFixture, spans: InMemorySpanExporter
) -> None:
    def failing(running: Running) -> Proposal:
        raise StoreUnreachable("the message names a value")

    before = metric("grebe_operations_total", verb="refresh", outcome="failed")
    with pytest.raises(StoreUnreachable):
        carry_out(log, Verb.REFRESH, ["by_customer"], failing)
    with pytest.raises(IndexNotFound):
        carry_out(log, Verb.REFRESH, ["absent"], failing)
    assert [one["code"] for one in lines(told, "operation_failed")] == ["STORE_UNREACHABLE", "INDEX_NOT_FOUND"]
    assert "names a value" not in told.text
    assert metric("grebe_operations_total", verb="refresh", outcome="failed") == before + 2
    first, _ = spans.get_finished_spans()
    assert (first.status.status_code, first.status.description) == (trace.StatusCode.ERROR, "STORE_UNREACHABLE")
    assert first.events == ()


def test_every_verb_is_told_once(log: Log, told: pytest.LogCaptureFixture, spans: InMemorySpanExporter) -> None:
    def count(verb: str) -> float:
        return metric("grebe_operations_total", verb=verb, outcome="ok")

    verbs = ("delete", "restore", "verify", "cancel", "delete", "vacuum")
    before = {verb: count(verb) for verb in verbs}
    delete(log, "by_customer")
    restore(log, "by_customer")
    verify(log)
    cancel(log, "by_customer")
    delete(log, "by_customer")
    assert vacuum(log, limits=Limits(0)).indexes == ("by_customer",)
    assert [one["verb"] for one in lines(told, "operation_begun")] == list(verbs)
    assert [one["verb"] for one in lines(told, "operation_done")] == list(verbs)
    assert [span.name for span in spans.get_finished_spans()] == [f"grebe.{verb}" for verb in verbs]
    assert {verb: count(verb) - before[verb] for verb in before} == {verb: verbs.count(verb) for verb in verbs}
    assert lines(told, "operation_done")[-1]["dropped"] == "by_customer"


def test_spans_carry_the_facts_and_lie_in_one_another(log: Log, spans: InMemorySpanExporter) -> None:
    with telemetry.span("outer", LOGGER):
        rewriting(log)
    inner, outer = spans.get_finished_spans()
    assert inner.attributes is not None
    assert inner.attributes["grebe.indexes"] == ("by_customer",)
    assert inner.attributes["grebe.rows"] == 10
    assert inner.parent is not None
    assert outer.context is not None
    assert inner.parent.span_id == outer.context.span_id


def test_without_a_provider_there_are_no_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "get_tracer_provider", trace.ProxyTracerProvider)
    with telemetry.span("outer", LOGGER):
        assert not trace.get_current_span().is_recording()


def test_operations_are_timed(log: Log) -> None:
    before = metric("grebe_operation_seconds_count", verb="delete")
    delete(log, "by_customer")
    assert metric("grebe_operation_seconds_count", verb="delete") == before + 1


def test_lookups_are_told_without_the_values_they_look_for(
    table: str, told: pytest.LogCaptureFixture, spans: InMemorySpanExporter
) -> None:
    names = ("grebe_lookups_total", "grebe_requests_total", "grebe_read_bytes_total")
    before = [metric(name) for name in names]
    opened = grebe.open(table)
    assert opened.get("name", "a secret").num_rows == 1
    assert opened.count("name = 'a secret'") == 1
    assert opened.exists("name = 'a secret'")
    assert opened.rows("name = 'a secret'").num_rows == 1
    assert len(opened.files("name = 'a secret'").files) == 1
    assert [one["call"] for one in lines(told, "lookup_done")] == ["scan", "count", "exists", "rows", "files"]
    assert lines(told, "lookup_done")[0]["rows"] == "1"
    assert "secret" not in told.text
    assert [span.name for span in spans.get_finished_spans()] == ["grebe.lookup"] * 5
    lookups, requests, read = (metric(name) - was for name, was in zip(names, before, strict=True))
    assert lookups == 5
    counts = opened.counts()
    assert (requests, read) == (counts.requests, counts.bytes_read)


def test_planned_queries_are_counted_by_whether_an_index_is_used(told: pytest.LogCaptureFixture) -> None:
    before = [metric("grebe_queries_total", used=used) for used in ("yes", "no")]
    for used in (("by_customer",), (), ()):
        with telemetry.planning(LOGGER, ["file:///t"], since=SYSTEM.monotonic() - 1) as planned:
            planned.add(used=used)
    assert [metric("grebe_queries_total", used=used) for used in ("yes", "no")] == [before[0] + 1, before[1] + 2]
    first = lines(told, "planning_done")[0]
    assert (first["tables"], first["used"]) == ("file:///t", "by_customer")
    assert float(first["seconds"]) >= 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "k=plain"),
        ("two words", 'k="two words"'),
        ("a\nevent=forged", r'k="a\nevent=forged"'),
        ("", 'k=""'),
        (("a", "b"), "k=a,b"),
        (7, "k=7"),
        (0.25, "k=0.250000"),
    ],
)
def test_whatever_a_value_holds_it_stays_one_fact_in_one_line(
    told: pytest.LogCaptureFixture, value: telemetry.Fact, text: str
) -> None:
    telemetry.event(LOGGER, logging.INFO, "seen", k=value, left_out=None)
    assert told.messages == [f"event=seen {text}"]


def test_every_call_of_a_logger_is_an_event() -> None:
    """Those that go past `telemetry.event` keep to its form."""
    calls = re.compile(r"_logger\.(?:debug|info|warning|error|exception|critical|log)\(\s*(.*)")
    faults = []
    for path in sorted((ROOT / "src" / "grebe").rglob("*.py")):
        found = [] if path.name == "telemetry.py" else calls.findall(path.read_text(encoding="utf-8"))
        faults += [f"{path.name}: {call}" for call in found if not call.startswith('"event=')]
    assert faults == []


def test_neither_package_is_loaded_by_grebe(table: str) -> None:
    program = (
        f"import sys, grebe; grebe.open({table!r}).get('n', 1);"
        "print([name for name in ('opentelemetry', 'prometheus_client') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
