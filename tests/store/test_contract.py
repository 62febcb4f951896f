"""What every store must do, run over each of them against its real server."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from grebe.clock import SYSTEM
from grebe.errors import StoreRefused
from grebe.store.children import children_of
from grebe.store.folders import HasFolders
from grebe.store.hadoop import hadoop_store
from grebe.store.local import LocalStore
from grebe.store.memory import MemoryStore
from grebe.store.patient import PatientStore
from grebe.store.protocol import ObjectChanged, ObjectExists, ObjectMissing, OutcomeUnknown, Store

MEGABYTE = 1_000_000

ODD_NAMES = [
    "a b",
    " before",
    "behind ",
    "100%",
    "a%20b",
    "a#b",
    "a?b",
    "a+b&c=d",
    "country=Côte d%27Ivoire/x=1%2F2",
    "日本語/ü",
    "e\u0301",
    "🐦",
    "\ue000",
    'it\'s "quoted"',
    "[a]{b}*~!$(),;@^|",
    "<tag>",
    ".hidden",
    "_under/_score",
    "...",
]


@pytest.fixture(
    params=[
        "memory",
        "local",
        pytest.param("s3", marks=pytest.mark.xdist_group("s3")),
        pytest.param("azure", marks=pytest.mark.xdist_group("s3")),
        pytest.param("hdfs", marks=pytest.mark.xdist_group("hdfs")),
        pytest.param("hadoop", marks=[pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("hdfs")]),
    ]
)
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """An empty one of each kind."""
    if request.param == "memory":
        yield MemoryStore()
    elif request.param == "hadoop":
        uri = request.getfixturevalue("hdfs_server").uri(SYSTEM.new_id())
        yield hadoop_store(request.getfixturevalue("spark"), uri)
    else:
        yield request.getfixturevalue(f"{request.param}_recipe").open()


def paths(store: Store, prefix: str = "", start_after: str = "") -> list[str]:
    return [info.path for info in store.list(prefix, start_after)]


class TestWholeObjects:
    @pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 40], ids=["empty", "one byte", "all bytes"])
    @pytest.mark.parametrize("verb", ["put", "put_if_absent"])
    def test_what_is_put_is_got(self, store: Store, verb: str, data: bytes) -> None:
        write: Callable[[str, bytes], None] = getattr(store, verb)
        write("folder/object", data)
        assert store.get("folder/object") == data

    @pytest.mark.parametrize("verb", ["put", "put_if_absent"])
    def test_ten_megabytes_come_back(self, store: Store, verb: str) -> None:
        data = b"".join(i.to_bytes(8, "big") for i in range(10 * MEGABYTE // 8))
        write: Callable[[str, bytes], None] = getattr(store, verb)
        write("big", data)
        assert store.get("big") == data
        assert store.stat("big").size == len(data)

    def test_put_replaces(self, store: Store) -> None:
        store.put("object", b"a longer first content")
        store.put("object", b"second")
        assert store.get("object") == b"second"

    def test_put_if_absent_refuses_a_taken_path_and_changes_nothing(self, store: Store) -> None:
        store.put_if_absent("object", b"first")
        with pytest.raises(ObjectExists):
            store.put_if_absent("object", b"second")
        assert store.get("object") == b"first"
        assert paths(store) == ["object"]

    def test_put_if_absent_refuses_what_put_has_put(self, store: Store) -> None:
        store.put("object", b"first")
        with pytest.raises(ObjectExists):
            store.put_if_absent("object", b"second")
        assert store.get("object") == b"first"

    def test_a_deleted_path_is_free_again(self, store: Store) -> None:
        store.put_if_absent("object", b"first")
        store.delete("object")
        store.put_if_absent("object", b"second")
        assert store.get("object") == b"second"

    def test_deleting_twice_is_no_error(self, store: Store) -> None:
        store.put("folder/object", b"x")
        store.delete("folder/object")
        store.delete("folder/object")
        store.delete("nowhere/at/all")
        assert paths(store) == []

    def test_deleting_one_leaves_its_neighbours(self, store: Store) -> None:
        for path in ("a/b", "a/bc", "a/b-"):
            store.put(path, b"x")
        store.delete("a/b")
        assert paths(store) == ["a/b-", "a/bc"]

    def test_what_is_not_there_is_missing(self, store: Store) -> None:
        store.put("folder/object", b"x")
        for path in ("object", "folder", "folder/objec", "folder/object2", "nowhere/at/all"):
            with pytest.raises(ObjectMissing):
                store.get(path)
            with pytest.raises(ObjectMissing):
                store.get_range(path, 0, 1)
            with pytest.raises(ObjectMissing):
                store.stat(path)


class TestRanges:
    def test_a_range_is_cut_out(self, store: Store) -> None:
        store.put("object", b"0123456789")
        assert store.get_range("object", 3, 4) == b"3456"

    def test_ranges_end_where_the_object_ends(self, store: Store) -> None:
        store.put("object", b"0123456789")
        assert store.get_range("object", 8, 100) == b"89"
        assert store.get_range("object", 10, 5) == b""
        assert store.get_range("object", 500, 5) == b""
        assert store.get_range("object", 4, 0) == b""

    def test_ranges_of_an_empty_object_are_empty(self, store: Store) -> None:
        store.put("object", b"")
        assert store.get_ranges("object", [(0, 10), (5, 1)]) == [b"", b""]

    def test_many_ranges_come_in_the_order_asked(self, store: Store) -> None:
        data = bytes(i * 7 % 251 for i in range(3 * MEGABYTE))
        store.put("object", data)
        near = [(i * 100, 10) for i in range(200)]
        far = [(i * 300_000, 1000) for i in range(9, -1, -1)]
        asked = [*near, *far, (0, len(data)), (5, 0), (50, 100), (50, 100), (len(data) - 5, 50), (10 * MEGABYTE, 3)]
        assert store.get_ranges("object", asked) == [data[start : start + length] for start, length in asked]

    def test_no_ranges_are_nothing(self, store: Store) -> None:
        store.put("object", b"x")
        assert store.get_ranges("object", []) == []


class TestNames:
    def test_odd_names_are_kept_letter_by_letter(self, store: Store) -> None:
        for number, name in enumerate(ODD_NAMES):
            store.put_if_absent(f"odd/{name}", str(number).encode())
        assert paths(store, "odd") == sorted(f"odd/{name}" for name in ODD_NAMES)
        for number, name in enumerate(ODD_NAMES):
            assert store.get(f"odd/{name}") == str(number).encode()
            assert store.stat(f"odd/{name}").path == f"odd/{name}"
            assert paths(store, f"odd/{name}") == []
            store.delete(f"odd/{name}")
        assert paths(store) == []

    def test_names_that_differ_only_by_an_escape_are_two(self, store: Store) -> None:
        store.put_if_absent("a b", b"space")
        store.put_if_absent("a%20b", b"escape")
        assert (store.get("a b"), store.get("a%20b")) == (b"space", b"escape")

    @pytest.mark.parametrize("path", ["", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../../b", "a/./b", "a\0b"])
    def test_paths_that_lead_out_of_the_root_are_refused(self, store: Store, path: str) -> None:
        for call in (store.get, store.stat, store.delete):
            with pytest.raises(StoreRefused) as refused:
                call(path)
            assert refused.value.code == "STORE_REFUSED_PATH"
        for write in (store.put, store.put_if_absent):
            with pytest.raises(StoreRefused):
                write(path, b"x")


class TestChildren:
    def test_they_are_the_names_right_below_a_folder(self, store: Store) -> None:
        for path in ("a", "b/c", "b/d/e", "b-c/f", "y z/ü"):
            store.put(path, b"1")
        assert sorted(children_of(store)) == ["a", "b-c/", "b/", "y z/"]
        assert sorted(children_of(store, "b")) == ["c", "d/"]
        assert children_of(store, "y z") == ["ü"]
        assert children_of(store, "b/d/") == ["e"]

    def test_an_empty_store_and_a_missing_folder_have_none(self, store: Store) -> None:
        assert children_of(store) == []
        assert children_of(store, "nothing") == []


class TestFolders:
    @pytest.fixture
    def foldered(self, store: Store) -> PatientStore:
        if not isinstance(store, HasFolders):
            pytest.skip("it has no folders")
        return PatientStore(store, SYSTEM)

    def test_folders_are_told_after_those_in_them_and_removed_if_they_are_empty(self, foldered: PatientStore) -> None:
        assert foldered.folders("data") == []
        for path in ("data/a/b/c", "data/a/d", "data/e/f"):
            foldered.put(path, b"1")
        told = [one.path for one in foldered.folders("data")]
        assert sorted(told) == ["data", "data/a", "data/a/b", "data/e"]
        assert told.index("data/a/b") < told.index("data/a") < told.index("data")
        foldered.delete("data/a/b/c")
        foldered.delete("data/e/f")
        for folder in told:
            foldered.remove_folder(folder)
        foldered.remove_folder("nothing")
        assert sorted(one.path for one in foldered.folders("data")) == ["data", "data/a"]
        assert foldered.get("data/a/d") == b"1"

    def test_a_draft_that_was_left_is_told_and_can_be_removed(self, foldered: PatientStore) -> None:
        foldered.put("data/a", b"1")
        assert foldered.drafts() == []
        # As a process leaves it that dies while it writes.
        draft = f".grebe-drafts/{'0' * 32}"
        if isinstance(foldered._store, LocalStore):
            draft = f"data/.{'0' * 32}.grebe-draft"
        foldered.put(draft, b"half")
        assert [one.path for one in foldered.drafts()] == [draft]
        assert paths(foldered) == ["data/a"]
        foldered.delete(draft)
        assert foldered.drafts() == []


class TestListing:
    def test_an_empty_store_and_a_missing_folder_are_empty(self, store: Store) -> None:
        assert paths(store) == []
        assert paths(store, "nowhere") == []
        assert paths(store, "nowhere/at/all", "nowhere/at") == []

    def test_a_prefix_is_a_whole_folder(self, store: Store) -> None:
        for path in ("log/1", "log/2/3", "log-old/1", "logs", "x/log/1"):
            store.put(path, b"x")
        assert paths(store, "log") == ["log/1", "log/2/3"]
        assert paths(store, "log/") == ["log/1", "log/2/3"]
        assert paths(store, "log/1") == []
        assert paths(store, "lo") == []

    def test_the_order_is_that_of_whole_paths(self, store: Store) -> None:
        names = ["a-b/x", "a.b", "a/x", "a/y/z", "a0", "B", "b", "é", "\ue000", "🐦"]
        for path in reversed(names):
            store.put(path, b"x")
        expected = sorted(names, key=lambda path: path.encode())
        assert paths(store) == expected
        for place, path in enumerate(expected):
            assert paths(store, start_after=path) == expected[place + 1 :], path

    def test_start_after_need_not_be_there(self, store: Store) -> None:
        for path in ("log/a/x", "log/a-b", "log/b", "log/c/y"):
            store.put(path, b"x")
        assert paths(store, "log", "log/a") == ["log/a-b", "log/a/x", "log/b", "log/c/y"]
        assert paths(store, "log", "log/a.") == ["log/a/x", "log/b", "log/c/y"]
        assert paths(store, "log", "log/a/y") == ["log/b", "log/c/y"]
        assert paths(store, "log", "log/bb") == ["log/c/y"]
        assert paths(store, "log", "log/c/z") == []
        assert paths(store, "log", "zzz") == []
        assert paths(store, "log", "aaa") == ["log/a-b", "log/a/x", "log/b", "log/c/y"]

    def test_entries_say_what_stat_says(self, store: Store) -> None:
        store.put("folder/a", b"12345")
        store.put("folder/b", b"")
        assert list(store.list()) == [store.stat("folder/a"), store.stat("folder/b")]
        assert [info.size for info in store.list()] == [5, 0]

    def test_times_come_from_one_clock_and_follow_the_writes(self, store: Store) -> None:
        before = SYSTEM.now_ms()
        store.put("first", b"x")
        store.put("second", b"x")
        first, second = store.stat("first").modified_ms, store.stat("second").modified_ms
        assert first <= second
        # All servers run here, and none counts in more than whole seconds.
        assert before - 1000 <= first <= SYSTEM.now_ms() + 1000

    def test_more_objects_than_a_page_are_all_listed(self, store: Store) -> None:
        # A page has a thousand, on our HDFS a hundred, and on Azure more than a test should make.
        count = 250 if store.uri.startswith(("hdfs:", "abfs:")) else 2500
        expected = [f"many/{number:06d}" for number in range(count)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda path: store.put(path, b""), expected))
        assert paths(store, "many") == expected
        assert paths(store, "many", expected[120]) == expected[121:]


class TestConcurrency:
    def test_of_eight_writers_exactly_one_wins_each_key(self, store: Store) -> None:
        # The S3 server lets each loser of a race wait for a second or more.
        writers, keys = 8, 3 if store.uri.startswith("s3:") else 12
        barrier = threading.Barrier(writers)

        def write(writer: int) -> list[str]:
            won = []
            for key in range(keys):
                barrier.wait()
                try:
                    store.put_if_absent(f"race/{key:03d}", f"writer {writer}".encode() * 100)
                except ObjectExists:
                    continue
                won.append(f"race/{key:03d}")
            return won

        with ThreadPoolExecutor(writers) as pool:
            outcomes = list(pool.map(write, range(writers)))
        assert sorted(path for won in outcomes for path in won) == paths(store, "race") != []
        for writer, won in enumerate(outcomes):
            for path in won:
                assert store.get(path) == f"writer {writer}".encode() * 100

    def test_readers_never_see_half_of_a_put(self, store: Store) -> None:
        contents = [bytes([letter]) * (200_000 + letter) for letter in b"ab"]
        store.put("object", contents[0])
        done = threading.Event()

        def read() -> tuple[int, set[bytes]]:
            count, seen = 0, set()
            while not done.is_set():
                try:
                    seen.add(store.get("object"))
                except OutcomeUnknown:
                    # The object was replaced between opening and reading it: a reader is told so, and asks again.
                    continue
                count += 1
            return count, seen

        with ThreadPoolExecutor(3) as pool:
            readers = [pool.submit(read) for _ in range(3)]
            try:
                for turn in range(30):
                    store.put("object", contents[turn % 2])
            finally:
                done.set()
        for reader in readers:
            count, seen = reader.result()
            assert count > 0
            assert seen <= set(contents)

    def test_a_new_object_is_seen_whole_or_not_at_all(self, store: Store) -> None:
        data = b"entry" * 50_000
        done = threading.Event()

        def read() -> set[bytes]:
            seen = set()
            while not done.is_set():
                for number in range(10):
                    try:
                        seen.add(store.get(f"log/{number}"))
                    except ObjectMissing:
                        break
            return seen

        with ThreadPoolExecutor(2) as pool:
            readers = [pool.submit(read) for _ in range(2)]
            try:
                for number in range(10):
                    store.put_if_absent(f"log/{number}", data)
            finally:
                done.set()
        assert all(reader.result() <= {data} for reader in readers)


class TestExpectedObjects:
    def test_ranges_of_the_object_that_is_expected_are_read(self, store: Store) -> None:
        store.put("a", b"0123456789" * 50_000)
        for known in (store.stat("a"), next(iter(store.list()))):
            spans = [(3, 4), (400_000, 5), (499_998, 9)]
            assert store.get_ranges("a", spans, known) == [b"3456", b"01234", b"89"]

    @pytest.mark.parametrize("other", [b"9876543210", b"longer than it was"], ids=["same size", "longer"])
    def test_no_byte_of_another_object_is_given(self, store: Store, other: bytes) -> None:
        store.put("a", b"0123456789")
        known = store.stat("a")
        SYSTEM.sleep(0.02)
        store.put("a", other)
        for spans in ([(0, 5)], [(0, 2), (8, 2)]):
            with pytest.raises(ObjectChanged):
                store.get_ranges("a", spans, known)
        assert store.get_ranges("a", [(0, 2)], store.stat("a")) == [other[:2]]


def test_the_uri_names_the_root_and_ends_in_no_slash(store: Store) -> None:
    assert "://" in store.uri
    assert not store.uri.endswith("/")
    assert store.uri in repr(store) or store.uri.removeprefix("file://") in repr(store)
