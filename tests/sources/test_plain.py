"""Tables of plain files: formats found by suffix, bad input, files that change under us. Spark is not needed here."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grebe.clock import SimulatedClock
from grebe.errors import GrebeError, SourceChanged, TableNotFound, UnreadableFile, Unsupported
from grebe.files import FileList, diff
from grebe.formats import Column
from grebe.formats.text import TEXT
from grebe.sources import Request, open_source, settled_files
from grebe.sources.listing import Roots
from grebe.sources.plain import PlainSource
from grebe.store.memory import MemoryStore
from tests.sources.whole_table import paths_of


def parquet(path: Path, rows: int = 1) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"a": list(range(rows))}), path)


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("f.parquet", "parquet"),
        ("part-0.snappy.parquet", "parquet"),
        ("f.orc", "orc"),
        ("F.CSV", "csv"),
        ("f.csv.gz", "csv"),
        ("f.json", "json"),
        ("f.jsonl.zst", "json"),
        ("f.avro", "avro"),
        ("f.txt", "text"),
    ],
)
def test_the_suffix_tells_the_format(tmp_path: Path, name: str, format: str) -> None:
    (tmp_path / name).write_bytes(b"x")
    (tmp_path / "_SUCCESS").touch()
    source = open_source(tmp_path)
    assert source.format.name == format
    assert (source.uri, source.name, source.kind) == (f"file://{tmp_path}", tmp_path.name, "plain")
    assert paths_of(source) == [name]


def test_a_table_of_two_formats_is_refused_by_both_names_and_a_choice_helps(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("1\n")
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_MIXED_FORMATS\].*csv and parquet"):
        open_source(tmp_path)
    chosen = open_source(tmp_path, format="parquet", options={"pathGlobFilter": "*.parquet"})
    assert paths_of(chosen) == ["a.parquet"]


@pytest.mark.parametrize("names", [["f.xyz"], ["noSuffix"]])
def test_files_of_no_known_format_are_no_table_until_the_format_is_given(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).write_text("line\n")
    with pytest.raises(TableNotFound, match=r"\[TABLE_NOT_FOUND_FORMAT\].*give `format`"):
        open_source(tmp_path)
    assert paths_of(open_source(tmp_path, format="text")) == names


def test_an_unknown_format_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet")
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_FORMAT\].*avro, csv, json, orc, parquet"):
        open_source(tmp_path, format="excel")


@pytest.mark.parametrize("given", [None, "parquet"])
def test_what_is_no_table_is_not_found(tmp_path: Path, given: str | None) -> None:
    (tmp_path / "only hidden").mkdir()
    (tmp_path / "only hidden" / "_SUCCESS").write_text("x")
    (tmp_path / "only empty").mkdir()
    (tmp_path / "only empty" / "f.parquet").touch()
    (tmp_path / "nothing").mkdir()
    for name in ("only hidden", "only empty", "nothing", "missing", "missing.parquet", "missing*"):
        with pytest.raises(TableNotFound):
            open_source(tmp_path / name, format=given).files()
    with pytest.raises(TableNotFound):
        open_source([])


def test_a_table_whose_schema_is_known_may_be_empty(tmp_path: Path) -> None:
    (tmp_path / "_SUCCESS").write_text("x")
    source = open_source(tmp_path, format="parquet", schema=[Column("a", "long")])
    assert not len(source.files())
    assert source.schema() == pa.schema([("a", pa.int64())])


@pytest.mark.parametrize(
    ("mark", "code"),
    [
        ("_delta_log/00.json", "TABLE_NOT_FOUND_DELTA"),
        (".hoodie/hoodie.properties", "TABLE_NOT_FOUND_HUDI"),
        ("metadata/v1.metadata.json", "UNSUPPORTED_ICEBERG"),
    ],
)
def test_a_lake_table_is_not_taken_for_plain_files(tmp_path: Path, mark: str, code: str) -> None:
    """Not even a damaged one, and not where it lies among other files."""
    parquet(tmp_path / "t" / "a.parquet")
    (tmp_path / "t" / mark).parent.mkdir()
    (tmp_path / "t" / mark).write_text("{}")
    with pytest.raises(GrebeError, match=r"Delta Lake|Hudi|Iceberg") as damaged:
        open_source(tmp_path / "t")
    assert damaged.value.code == code
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_LAKE_TABLE\].*by its own path"):
        open_source(tmp_path)


def test_files_that_a_stream_of_spark_writes_are_left_to_spark(tmp_path: Path) -> None:
    """Some of them may be of batches that failed."""
    parquet(tmp_path / "a.parquet")
    (tmp_path / "_spark_metadata").mkdir()
    (tmp_path / "_spark_metadata" / "0").write_text("v1")
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_STREAM_SINK\].*foreachBatch"):
        open_source(tmp_path, format="parquet")


def test_one_file_is_a_table_in_the_folder_above_it(tmp_path: Path) -> None:
    parquet(tmp_path / "t" / "a.parquet")
    parquet(tmp_path / "t" / "b.parquet")
    source = open_source(tmp_path / "t" / "a.parquet")
    assert (source.name, paths_of(source)) == ("t", ["a.parquet"])
    parquet(tmp_path / "folder.parquet" / "part.parquet")
    assert open_source(tmp_path / "folder.parquet").name == "folder.parquet"


def test_several_roots_lie_in_one_store(tmp_path: Path) -> None:
    parquet(tmp_path / "x" / "a.parquet")
    parquet(tmp_path / "y" / "z" / "b.parquet")
    source = open_source([tmp_path / "x", tmp_path / "y" / "z"])
    assert source.uri == f"file://{tmp_path}"
    assert paths_of(source) == ["x/a.parquet", "y/z/b.parquet"]
    with pytest.raises(TableNotFound, match=r"\[TABLE_NOT_FOUND_STORES\].*one store"):
        open_source([str(tmp_path), "s3://bucket/t"])


def test_plain_files_have_no_versions(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet")
    source = open_source(tmp_path)
    assert source.version() is None
    for version, timestamp in ((0, None), ("v", None), (None, "2026-01-01")):
        with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_VERSION\].*no versions"):
            source.at(version, timestamp)


def test_changes_since_a_listing(tmp_path: Path) -> None:
    for name in "abc":
        parquet(tmp_path / f"{name}.parquet")
    source = open_source(tmp_path)
    before = source.files()
    (tmp_path / "a.parquet").unlink()
    parquet(tmp_path / "b.parquet", rows=5)
    parquet(tmp_path / "d.parquet")
    change = diff(before, source.files())
    assert change.added.paths().to_pylist() == ["b.parquet", "d.parquet"]
    assert change.removed.paths().to_pylist() == ["a.parquet", "b.parquet"]
    assert change.unchanged.paths().to_pylist() == ["c.parquet"]


def test_a_file_or_table_that_vanishes_between_list_and_read_has_changed(tmp_path: Path) -> None:
    parquet(tmp_path / "t" / "a.parquet")
    source = open_source(tmp_path / "t")
    files = source.files()
    (tmp_path / "t" / "a.parquet").unlink()
    with pytest.raises(SourceChanged, match=r"\[SOURCE_CHANGED_FILE_GONE\].*gone"):
        source.reading(files)
    (tmp_path / "t").rmdir()
    with pytest.raises(TableNotFound, match=r"\[TABLE_NOT_FOUND_NO_PATH\]"):
        source.files()


def test_options_by_the_clock_are_refused(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet")
    with pytest.raises(Unsupported, match="modifiedAfter"):
        open_source(tmp_path, options={"modifiedAfter": "2020-01-01T00:00:00"})


def test_avro_files_are_listed_and_their_records_refused(tmp_path: Path) -> None:
    (tmp_path / "a.avro").write_bytes(b"Obj\x01")
    source = open_source(tmp_path)
    assert paths_of(source) == ["a.avro"]
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_AVRO\].*Spark only"):
        source.schema()


def test_the_reading_tells_two_ways_to_read_the_same_files_apart(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    plain = open_source(tmp_path)
    same = open_source(
        tmp_path, options={"SEP": ",", "header": "False", "inferSchema": "false"}, time_zone="Asia/Tokyo"
    )
    header = open_source(tmp_path, options={"header": "true"})
    files = plain.files()
    assert plain.reading(files) == same.reading(files)
    assert plain.reading(files).digest() == same.reading(files).digest()
    assert plain.reading(files) != header.reading(files)


class WaitingClock(SimulatedClock):
    """Does something while it is waited on, and counts the waiting."""

    def __init__(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self._meanwhile = meanwhile
        self.slept = 0.0

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self._meanwhile()


def touch(path: Path, modified_ms: int) -> None:
    os.utime(path, ns=(0, modified_ms * 1_000_000))


def test_files_older_than_the_stores_clock_by_its_granularity_need_no_wait(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet")
    touch(tmp_path / "a.parquet", 1000)
    clock = WaitingClock()
    settled = settled_files(open_source(tmp_path), clock, store_now_ms=1021)
    assert (names(settled.files), names(settled.changing), clock.slept) == (["a.parquet"], [], 0)


@pytest.mark.parametrize("store_now_ms", [None, 1020, 1000, 999])
def test_a_file_changed_within_the_granularity_is_waited_for(tmp_path: Path, store_now_ms: int | None) -> None:
    parquet(tmp_path / "a.parquet")
    touch(tmp_path / "a.parquet", 1000)
    clock = WaitingClock()
    settled = settled_files(open_source(tmp_path), clock, store_now_ms)
    assert (names(settled.files), names(settled.changing), clock.slept) == (["a.parquet"], [], 0.02)


@pytest.mark.parametrize("hours", [-1, 1])
def test_clocks_an_hour_apart_do_not_matter(tmp_path: Path, hours: int) -> None:
    """The store's clock is an hour ahead of, or behind, everyone else's."""
    for name in "ab":
        parquet(tmp_path / f"{name}.parquet")
    clock = WaitingClock(lambda: parquet(tmp_path / "b.parquet", rows=9))
    for name in "ab":
        touch(tmp_path / f"{name}.parquet", clock.now_ms() + hours * 3_600_000)
    settled = settled_files(open_source(tmp_path), clock)
    assert (names(settled.files), names(settled.changing)) == (["a.parquet"], ["b.parquet"])


def test_remote_stores_have_a_coarser_clock() -> None:
    store = MemoryStore()
    store.put("f.txt", b"x")
    request = Request(("s3://bucket/t",))
    assert PlainSource("s3://bucket/t", Roots.of(request.paths), store, request, TEXT).settling_ms == 2000


def test_a_hundred_thousand_files_are_listed_in_columns() -> None:
    store = MemoryStore()
    for i in range(100_000):
        store.put(f"day={i // 1000:03}/f{i:06}.txt", b"x")
    request = Request(("memory://m",))
    source = PlainSource("memory://m", Roots("memory://m", ("",)), store, request, TEXT)
    files = source.files()
    assert len(files) == 100_000
    reading = source.reading(files)
    values = source.partition_values(files, reading)
    assert values.column("day").to_pylist() == [i // 1000 for i in range(100_000)]
    assert reading.columns == (Column("value", "string"), Column("day", "integer", partition=True))


def test_racing_writers_never_make_a_listing_fail(tmp_path: Path) -> None:
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            (tmp_path / f"{number % 50}.txt").write_text("x" * number)
            (tmp_path / f"{(number + 25) % 50}.txt").unlink(missing_ok=True)

    (tmp_path / "stays.txt").write_text("x")
    writer = threading.Thread(target=write)
    writer.start()
    try:
        source = open_source(tmp_path, format="text")
        for _ in range(50):
            assert "stays.txt" in names(source.files())
    finally:
        stop.set()
        writer.join()


def names(files: FileList) -> list[str]:
    found: list[str] = files.paths().to_pylist()
    return found


def not_unicode(folder: Path, name: bytes) -> None:
    place = os.path.join(os.fsencode(folder), name)  # noqa: PTH118 - a `Path` has no bytes
    os.makedirs(os.path.dirname(place), exist_ok=True)  # noqa: PTH103, PTH120 - as above
    with open(place, "wb") as file:  # noqa: PTH123 - as above
        file.write(b"x")


@pytest.mark.parametrize("name", [b".\xff", b"_\xff", b".\xff/a.parquet", b"folder \xff/a.parquet", b"a\xff._COPYING_"])
def test_what_is_no_data_may_have_a_name_that_is_no_utf8(tmp_path: Path, name: bytes) -> None:
    parquet(tmp_path / "a.parquet", 3)
    not_unicode(tmp_path, name)
    assert paths_of(open_source(tmp_path)) == ["a.parquet"]


@pytest.mark.parametrize(
    ("good", "name", "shown"),
    [
        ("a.parquet", b"\xff.parquet", r"/\xff.parquet"),
        ("a.parquet", b"\xff.txt", r"/\xff.txt"),
        ("day=1/a.parquet", b"day=\xff/a.parquet", r"/day=\xff/a.parquet"),
        ("day=1/a.parquet", b"day=1/gr\xf6\xdfe.parquet", r"/day=1/gr\xf6\xdfe.parquet"),
        (None, b"\xff.parquet", r"/\xff.parquet"),
    ],
)
def test_a_data_file_with_a_name_that_is_no_utf8_is_named_with_its_bytes(
    tmp_path: Path, good: str | None, name: bytes, shown: str
) -> None:
    if good:
        parquet(tmp_path / good)
    not_unicode(tmp_path, name)
    with pytest.raises(UnreadableFile, match="rename") as refused:
        open_source(tmp_path).files()
    assert refused.value.code == "UNREADABLE_FILE_NAME"
    assert f"{tmp_path}{shown} is no UTF-8 text" in str(refused.value)


def test_an_empty_file_and_one_that_a_filter_leaves_out_may_have_a_name_that_is_no_utf8(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet")
    not_unicode(tmp_path, b"\xff.csv")
    chosen = open_source(tmp_path, options={"pathGlobFilter": "*.parquet"})
    assert paths_of(chosen) == ["a.parquet"]
    os.truncate(os.path.join(os.fsencode(tmp_path), b"\xff.csv"), 0)  # noqa: PTH118 - a `Path` has no bytes
    assert paths_of(open_source(tmp_path)) == ["a.parquet"]


def test_a_link_to_itself_among_the_files_is_no_file_of_the_table(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet")
    (tmp_path / "x.parquet").symlink_to(tmp_path / "x.parquet")
    assert paths_of(open_source(tmp_path)) == ["a.parquet"]
