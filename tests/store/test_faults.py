"""What each disturbance between us and an object store means to a caller, with and without the client's own repetitions."""

from collections import Counter
from collections.abc import Callable, Mapping

import pytest

from grebe.clock import SYSTEM
from grebe.errors import GrebeError, StoreRefused
from grebe.store.object import ObjectStore
from grebe.store.protocol import ObjectExists, ObjectMissing, OutcomeUnknown, Store
from testbed.proxy import SOME_OF_EACH, FaultProxy, Step
from testbed.recipes import StoreRecipe
from testbed.s3 import S3Server

pytestmark = pytest.mark.xdist_group("s3")

DATA = b"0123456789" * 20_000
FAR_APART = [(0, 10), (190_000, 10)]

READS: Mapping[str, Callable[[Store], object]] = {
    "get": lambda store: store.get("object"),
    "get_range": lambda store: store.get_range("object", 5, 3),
    "get_ranges": lambda store: store.get_ranges("object", FAR_APART),
    "stat": lambda store: store.stat("object").size,
    "list": lambda store: [info.path for info in store.list()],
}
WRITES: Mapping[str, Callable[[Store], object]] = {
    "put_if_absent": lambda store: store.put_if_absent("new", b"mine"),
    "put": lambda store: store.put("new", b"mine"),
    "delete": lambda store: store.delete("object"),
}
ANSWERS = {
    "get": DATA,
    "get_range": b"567",
    "get_ranges": [b"0123456789", b"0123456789"],
    "stat": len(DATA),
    "list": ["object"],
}
BEFORE = ["503 before", "429 before", "reset before"]
AFTER = ["500 after", "lost reply"]


class Bench:
    """The same root three ways: through the proxy with the client's repetitions, without them, and past the proxy."""

    def __init__(self, server: S3Server, proxy: FaultProxy) -> None:
        uri = server.uri(SYSTEM.new_id())
        proxied = {**server.storage_options, "endpoint": proxy.endpoint, "timeout": "600ms"}
        self.proxy = proxy
        self.patient = StoreRecipe(uri, proxied).open()
        self.plain = StoreRecipe(uri, {**proxied, "max_retries": "0"}).open()
        self.direct = StoreRecipe(uri, server.storage_options).open()


@pytest.fixture(scope="module")
def module_bench(s3_server: S3Server, worker_proxy: FaultProxy) -> Bench:
    return Bench(s3_server, worker_proxy)


@pytest.fixture
def bench(module_bench: Bench, proxy: FaultProxy) -> Bench:
    """One object is there, and no fault."""
    for info in list(module_bench.direct.list()):
        if info.path != "object":
            module_bench.direct.delete(info.path)
    module_bench.direct.put("object", DATA)
    return module_bench


def outcome(call: Callable[[Store], object], store: Store) -> type[GrebeError] | None:
    try:
        call(store)
    except GrebeError as error:
        return type(error)
    return None


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("fault", [*BEFORE, *AFTER])
def test_a_read_that_failed_once_is_unknown_and_comes_right_when_repeated(bench: Bench, name: str, fault: str) -> None:
    bench.proxy.plan([Step(fault)])
    assert outcome(READS[name], bench.plain) is OutcomeUnknown
    bench.proxy.plan([Step(fault)])
    assert READS[name](bench.patient) == ANSWERS[name]


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("fault", [*BEFORE, *AFTER])
def test_a_write_that_failed_once_is_unknown_whether_or_not_it_was_done(bench: Bench, name: str, fault: str) -> None:
    bench.proxy.plan([Step(fault)])
    assert outcome(WRITES[name], bench.plain) is OutcomeUnknown
    left = {info.path for info in bench.direct.list()}
    untouched, done = {"object"}, (set() if name == "delete" else {"object", "new"})
    assert left == (done if fault in AFTER else untouched)


@pytest.mark.parametrize("fault", BEFORE)
def test_the_client_repeats_a_conditional_put_that_never_arrived(bench: Bench, fault: str) -> None:
    bench.proxy.plan([Step(fault)])
    bench.patient.put_if_absent("new", b"mine")
    assert bench.direct.get("new") == b"mine"
    assert bench.proxy.counts() == {"PUT IF ABSENT": 2}


@pytest.mark.parametrize("fault", AFTER)
def test_a_repeated_conditional_put_finds_its_own_write(bench: Bench, fault: str) -> None:
    bench.proxy.plan([Step(fault)])
    assert outcome(WRITES["put_if_absent"], bench.patient) is ObjectExists
    assert bench.direct.get("new") == b"mine"


def test_a_conflict_may_be_reported_with_nothing_stored(bench: Bench) -> None:
    bench.proxy.plan([Step("409 before")])
    assert outcome(WRITES["put_if_absent"], bench.patient) is ObjectExists
    with pytest.raises(ObjectMissing):
        bench.direct.get("new")


@pytest.mark.parametrize("name", ["put", "delete", "get", "list"])
def test_a_conflict_without_a_condition_is_only_an_unknown_outcome(bench: Bench, name: str) -> None:
    bench.proxy.plan([Step("409 before", times=10)])
    assert outcome({**READS, **WRITES}[name], bench.patient) is OutcomeUnknown


def test_a_reply_that_comes_too_late_is_unknown_and_the_write_done(bench: Bench) -> None:
    bench.proxy.plan([Step("slow reply")], slow=1.0)
    assert outcome(WRITES["put_if_absent"], bench.patient) is OutcomeUnknown
    assert bench.direct.get("new") == b"mine"
    assert bench.proxy.counts() == {"PUT IF ABSENT": 1}


def test_a_write_may_land_after_its_caller_gave_up(bench: Bench) -> None:
    bench.proxy.plan([Step("late")], slow=0.9)
    assert outcome(WRITES["put_if_absent"], bench.patient) is OutcomeUnknown
    with pytest.raises(ObjectMissing):
        bench.direct.get("new")
    while True:
        try:
            assert bench.direct.get("new") == b"mine"
        except ObjectMissing:
            SYSTEM.sleep(0.05)
        else:
            break


@pytest.mark.parametrize("name", ["get", "get_range", "get_ranges"])
def test_half_a_reply_is_never_taken_for_the_whole(bench: Bench, name: str) -> None:
    bench.proxy.plan([Step("cut short", "GET")])
    assert outcome(READS[name], bench.plain) is OutcomeUnknown
    bench.proxy.plan([Step("cut short", "GET")])
    assert READS[name](bench.patient) == ANSWERS[name]


def test_half_a_listing_is_never_taken_for_the_whole(bench: Bench) -> None:
    bench.proxy.plan([Step("cut short", "LIST")])
    assert outcome(READS["list"], bench.plain) is OutcomeUnknown


@pytest.mark.parametrize("name", [*READS, *WRITES])
def test_a_refusal_is_final_and_not_repeated(bench: Bench, name: str) -> None:
    bench.proxy.plan([Step("403 before", times=10)])
    with pytest.raises(StoreRefused) as refused:
        {**READS, **WRITES}[name](bench.patient)
    assert refused.value.code == "STORE_REFUSED_NO_PERMISSION"
    assert "status 403" in str(refused.value)
    asked = Counter((seen.kind, seen.path, seen.span) for seen in bench.proxy.seen())
    assert set(asked.values()) == {1}


@pytest.mark.parametrize("name", [*READS, *WRITES])
def test_a_store_that_stays_down_ends_in_an_unknown_outcome(bench: Bench, name: str) -> None:
    bench.proxy.plan([Step("503 before", times=100)])
    assert outcome({**READS, **WRITES}[name], bench.patient) is OutcomeUnknown


def test_nobody_listening_is_unknown(s3_server: S3Server) -> None:
    options = {**s3_server.storage_options, "endpoint": "http://127.0.0.1:9", "max_retries": "0"}
    store = StoreRecipe(s3_server.uri("x"), options).open()
    for call in (*READS.values(), *WRITES.values()):
        assert outcome(call, store) is OutcomeUnknown


def test_a_bucket_that_is_not_there_is_named(s3_server: S3Server) -> None:
    store = StoreRecipe("s3://no-such-bucket-here/x", s3_server.storage_options).open()
    for name in ("get", "list"):
        with pytest.raises(StoreRefused, match="no-such-bucket-here") as refused:
            READS[name](store)
        assert refused.value.code == "STORE_REFUSED_NO_BUCKET"


def test_http_has_to_be_allowed(s3_server: S3Server) -> None:
    options = {**s3_server.storage_options, "allow_http": "false"}
    with pytest.raises(StoreRefused, match="allow_http") as refused:
        StoreRecipe(s3_server.uri("x"), options).open().get("object")
    assert refused.value.code == "STORE_REFUSED_NO_HTTPS"


def test_near_ranges_are_one_request_and_far_ones_go_side_by_side(bench: Bench) -> None:
    near = [(i * 1000, 100) for i in range(100)]
    bench.proxy.plan()
    bench.patient.get_ranges("object", near)
    assert bench.proxy.counts() == {"GET": 1}
    big = bytes(4_000_000)
    bench.direct.put("big", big)
    far = [(i * 400_000, 100) for i in range(10)]
    bench.proxy.plan(latency=0.3)
    assert bench.patient.get_ranges("big", far) == [bytes(100)] * 10
    assert bench.proxy.counts() == {"GET": 10}
    assert max(each.under_way for each in bench.proxy.seen()) == 10


def test_what_counting_calls_a_request_is_one(bench: Bench) -> None:
    ranges = [*((i * 1000, 100) for i in range(50)), *FAR_APART]
    assert isinstance(bench.patient, ObjectStore)
    bench.proxy.plan()
    bench.patient.get_ranges("object", ranges)
    assert bench.proxy.counts()["GET"] == len(bench.patient.spans(ranges)) == 2


def test_commits_by_the_rule_survive_random_faults(bench: Bench) -> None:
    """Unknown: the same again. Taken: read it, and go on if it is another's. In the end each is there exactly once."""
    bench.proxy.plan(seed=7, rates={fault: 2 * rate for fault, rate in SOME_OF_EACH.items()})
    number = 0
    for name in (f"transaction {i}".encode() for i in range(40)):
        while True:
            try:
                bench.plain.put_if_absent(f"log/{number:06d}", name)
                break
            except OutcomeUnknown:
                continue
            except ObjectExists:
                try:
                    if bench.plain.get(f"log/{number:06d}") == name:
                        break
                    number += 1
                except (ObjectMissing, OutcomeUnknown):
                    continue
        number += 1
    assert {each.fault for each in bench.proxy.seen()} >= {"lost reply", "500 after", "409 before"}
    stored = [bench.direct.get(info.path) for info in bench.direct.list("log")]
    assert stored == [f"transaction {i}".encode() for i in range(40)]
