"""The small parts: joining of ranges, counting, the memory store's script, taking secrets out of text."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grebe.clock import SimulatedClock
from grebe.store.counting import Counting, Counts
from grebe.store.memory import MemoryStore, Moment
from grebe.store.object import ObjectStore, _safe_offset
from grebe.store.protocol import ObjectExists, ObjectMissing, OutcomeUnknown
from grebe.store.ranges import cut, spans
from grebe.store.redact import redacted, secrets_of

RANGES = st.lists(st.tuples(st.integers(0, 30_000_000), st.integers(0, 2_000_000)), max_size=12)


class TestRanges:
    @given(RANGES)
    def test_spans_are_in_order_disjoint_and_hold_every_range(self, ranges: list[tuple[int, int]]) -> None:
        asked = spans(ranges)
        assert all(length > 0 for _, length in asked)
        assert all(a + length <= b for (a, length), (b, _) in itertools.pairwise(asked))
        for start, length in ranges:
            covered = sum(max(0, min(start + length, a + n) - max(start, a)) for a, n in asked)
            assert covered == length

    @given(st.binary(max_size=400), st.lists(st.tuples(st.integers(0, 500), st.integers(0, 200)), max_size=8))
    def test_what_is_cut_is_what_was_asked_for(self, data: bytes, ranges: list[tuple[int, int]]) -> None:
        asked = spans(ranges)
        read = [data[start : start + length] for start, length in asked]
        assert cut(ranges, asked, read) == [data[start : start + length] for start, length in ranges]

    def test_a_long_range_is_read_in_parts(self) -> None:
        data = bytes(range(256)) * 100_000
        asked = spans([(100, 20_000_000)])
        assert len(asked) == 3
        assert cut([(100, 20_000_000)], asked, [data[a : a + n] for a, n in asked]) == [data[100:20_000_100]]

    def test_near_ranges_are_joined_and_far_ones_are_not(self) -> None:
        assert spans([(0, 10), (1000, 10), (10_000_000, 5)]) == [(0, 1010), (10_000_000, 5)]


NAMES = st.text(st.sampled_from("a0-./~ "), min_size=1, max_size=8)


class TestSafeOffset:
    @given(st.lists(NAMES, max_size=20), NAMES)
    def test_a_listing_folder_by_folder_from_there_loses_nothing(self, names: list[str], start_after: str) -> None:
        paths = {name.strip("/").replace("//", "/") for name in names} - {""}
        paths = {path for path in paths if all(path.split("/"))}
        offset = _safe_offset(start_after, 0)
        wanted = {path for path in paths if path > start_after}

        by_paths = {path for path in paths if offset is None or path > offset}
        by_folders = {path for path in paths if offset is None or path.split("/") > offset.split("/")}
        without_the_folder = {path for path in by_folders if offset is None or not path.startswith(f"{offset}/")}
        assert wanted <= by_paths
        assert wanted <= without_the_folder

    def test_numbered_names_keep_a_close_offset(self) -> None:
        assert _safe_offset("t/log/00000000000000000042.json", len("t/log/")) == "t/log/0000000000000000004"


class TestCounting:
    def test_each_call_is_a_request_and_bytes_count_both_ways(self) -> None:
        store = Counting(MemoryStore("counted"))
        store.put("a", b"12345")
        store.put_if_absent("b", b"123")
        with pytest.raises(ObjectExists):
            store.put_if_absent("b", b"123")
        assert store.get("a") == b"12345"
        assert store.get_ranges("a", [(0, 2), (4, 10)]) == [b"12", b"5"]
        with pytest.raises(ObjectMissing):
            store.stat("c")
        store.delete("c")
        assert [info.path for info in store.list()] == ["a", "b"]
        assert store.counts == Counts(
            {"put": 1, "put_if_absent": 2, "get": 1, "get_ranges": 2, "stat": 1, "delete": 1, "list": 1}, 8, 11
        )
        assert store.counts.requests == 9

    def test_the_difference_of_two_counts_is_what_happened_between(self) -> None:
        store = Counting(MemoryStore("counted"))
        store.put("a", b"12345")
        before = store.counts
        store.get("a")
        assert store.counts.since(before) == Counts({"get": 1}, 5, 0)

    def test_ranges_that_are_read_together_are_one_request_with_the_gap(self) -> None:
        class Joined(MemoryStore):
            spans = staticmethod(ObjectStore.spans)

        store = Counting(Joined("counted"))
        store.put("a", bytes(2000))
        before = store.counts
        store.get_ranges("a", [(0, 10), (990, 10), (1990, 500)])
        assert store.counts.since(before) == Counts({"get_ranges": 1}, 2000, 0)

    def test_a_listing_is_a_request_a_page(self) -> None:
        memory = MemoryStore("counted")
        for number in range(2001):
            memory.put(f"{number:05d}", b"")
        store = Counting(memory)
        assert len(list(store.list())) == 2001
        assert store.counts.by_call == {"list": 3}


class TestMemoryScript:
    def test_the_script_sees_every_call_before_and_after(self) -> None:
        seen: list[tuple[Moment, str, str]] = []
        store = MemoryStore("scripted", script=lambda moment, call, path: seen.append((moment, call, path)))
        store.put("a", b"x")
        store.get("a")
        store.get_ranges("a", [(0, 1), (0, 1)])
        list(store.list("folder"))
        assert seen == [
            (moment, call, path)
            for call, path in [("put", "a"), ("get", "a"), ("get", "a"), ("list", "folder")]
            for moment in ("before", "after")
        ]

    @pytest.mark.parametrize(("moment", "stored"), [("before", False), ("after", True)])
    @pytest.mark.parametrize("verb", ["put", "put_if_absent"])
    def test_a_fault_before_loses_the_request_and_one_after_only_the_reply(
        self, verb: str, moment: str, stored: bool
    ) -> None:
        def fail(now: Moment, call: str, path: str) -> None:
            if now == moment and call == verb:
                raise OutcomeUnknown(f"{now} {call}")

        store = MemoryStore("scripted", script=fail)
        with pytest.raises(OutcomeUnknown):
            getattr(store, verb)("a", b"x")
        assert ([info.path for info in store.list()] == ["a"]) is stored

    def test_times_are_those_of_its_clock(self) -> None:
        clock = SimulatedClock()
        store = MemoryStore("timed", clock)
        store.put("a", b"x")
        clock.advance(5)
        store.put("b", b"x")
        assert store.stat("b").modified_ms - store.stat("a").modified_ms == 5000


class TestRedaction:
    @pytest.mark.parametrize(
        "text",
        [
            "GET https://user:CANARY@host/x failed",
            "GET https://host/x?sv=2024&sig=CANARY failed",
            "secret_access_key=CANARY was wrong",
            "aws_session_token: 'CANARY'",
            "the value hidden-CANARY is no key",
            "Authorization: CANARY",
        ],
    )
    def test_what_looks_like_a_secret_or_is_known_to_be_one_is_gone(self, text: str) -> None:
        assert "CANARY" not in redacted(text, ["hidden-CANARY"])

    def test_secrets_of_the_environment_are_gone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SOME_SECRET_ACCESS_KEY", "abcd-CANARY")
        assert "CANARY" not in redacted("I was given abcd-CANARY")

    def test_the_rest_stays_readable(self) -> None:
        text = "Configuration key: 'acess_key' is not valid for store 'S3'."
        assert redacted(text) == text
        assert len(redacted("x" * 10_000)) < 400
        assert redacted("first line\nsecond line") == "first line"

    def test_secret_options_are_known_by_their_names(self) -> None:
        options = {
            "secret_access_key": "1",
            "account_key": "2",
            "sas_key": "3",
            "client_secret": "4",
            "session_token": "5",
            "region": "6",
            "endpoint": "7",
        }
        assert secrets_of(options) == ["1", "2", "3", "4", "5"]
