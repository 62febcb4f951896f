"""Bytes that once brought the process down, or ended in an error of a library: each is refused by an error of ours."""

import contextlib
import gzip
import hashlib
import io
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grebe
from grebe.advisor.workload import blocks, statistics
from grebe.errors import CorruptIndex, CorruptLog, UnreadableFile
from grebe.files import FileList, canonical_uri
from grebe.files.untrusted import gunzip
from grebe.formats import Column, DataFile, Reading, format_named
from grebe.formats.parquet_file import open_parquet
from grebe.formats.parquet_pages.structure import read_checked_footer
from grebe.formats.parquet_statistics import footer_of
from grebe.indexes.content.sealed import sealed
from grebe.indexes.sieving.build import build
from grebe.indexes.sieving.packing import pack, unpack
from grebe.indexes.sieving.sieve import Sieve
from grebe.log import codec
from grebe.maintenance.facts import facts_of
from grebe.store.local import LocalStore
from grebe.store.memory import MemoryStore
from testbed.fuzz.data_targets import OrcBytes, ParquetBytes
from testbed.fuzz.lake_format_targets import IcebergMetadata
from testbed.fuzz.lakes import answers
from testbed.fuzz.run import run
from testbed.fuzz.seeds import Seeds
from testbed.fuzz.seeds import unpack as unpack_seeds
from testbed.fuzz.target import line_sealed


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Seeds:
    return unpack_seeds(tmp_path_factory.mktemp("seeds"))


def bomb(size: int) -> bytes:
    """So many zeros, packed."""
    packer = zlib.compressobj(9, wbits=16 + zlib.MAX_WBITS)
    step = bytes(1 << 20)
    return b"".join([*(packer.compress(step) for _ in range(size >> 20)), packer.flush()])


def test_a_hint_that_unpacks_to_far_more_is_refused_before_it_is_unpacked_and_the_log_still_opens(seeds: Seeds) -> None:
    packed = bomb(128 << 20)
    with pytest.raises(CorruptLog, match="unpacks to more than") as refused:
        codec.decode_state(packed, "the hint")
    assert refused.value.code == "CORRUPT_LOG_CHECKPOINT"
    table = seeds.table("parquet")
    right = answers(grebe.open(str(table)))
    hint = seeds.log("parquet") / "log" / "latest.json.gz"
    sound = hint.read_bytes()
    hint.write_bytes(packed)
    try:
        assert answers(grebe.open(str(table))) == right
    finally:
        hint.write_bytes(sound)


def test_gzip_of_several_members_is_unpacked_and_one_cut_short_is_refused() -> None:
    both = gzip.compress(b"one ") + gzip.compress(b"two")
    assert gunzip(both, 7) == b"one two"
    with pytest.raises(ValueError, match="more than 6 bytes"):
        gunzip(both, 6)
    with pytest.raises(EOFError):
        gunzip(both[:-3], 100)


@pytest.mark.parametrize("depth", [1_000, 100_000])
@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_an_entry_nested_deeply_is_refused(opening: bytes, depth: int) -> None:
    line = b'{"grebe":1,"number":' + opening * depth
    for data in (line_sealed(line), line_sealed(line + b"1" + (b"]" if opening == b"[" else b"}") * depth + b"}")):
        with pytest.raises(CorruptLog):
            codec.decode_entry(data, "an entry")


@pytest.mark.parametrize("number", ["1e400", "NaN", "1.5", "-7", '"7"', "null", "[]"])
def test_a_checkpoint_of_no_entry_is_refused(number: str) -> None:
    line = b'{"grebe":1,"number":%b,"digest":"x","state":{}}' % number.encode()
    with pytest.raises(CorruptLog):
        codec.decode_state(gzip.compress(line_sealed(line)), "a checkpoint")


def sieve_of(sections: list[bytes], head: bytes) -> bytes:
    content = head + pack(sections)
    return struct.pack("<I", zlib.crc32(content)) + content


@pytest.mark.parametrize("budget", [100, 50_000])
def test_a_sieve_that_asks_for_gigabytes_or_loops_is_refused(budget: int) -> None:
    keys = np.random.default_rng(1).integers(0, 10**12, 500)
    made = build(keys, keys, (keys % 7).astype(np.uint32), budget)
    assert made is not None
    data = made.to_bytes()
    head, sections = data[4:22], unpack(data[22:])
    huge = b"\0" + b"\xff" * 4
    for place in range(len(sections)):
        for forged in (huge, b"", b"\x08" + b"\xff" * 4, sections[place] * 2, sections[place][:-1]):
            changed = [forged if number == place else one for number, one in enumerate(sections)]
            if changed == sections:
                continue
            with contextlib.suppress(CorruptIndex):
                Sieve.from_bytes(sieve_of(changed, head)).files([(0, 10**12)])
    content = head + b"\xff" * 2_000_000
    with pytest.raises(CorruptIndex, match="64 bits"):
        Sieve.from_bytes(struct.pack("<I", zlib.crc32(content)) + content)


def test_forged_file_lists_do_not_reach_arrow(seeds: Seeds) -> None:
    """The first of these crashed the process, the others ended in errors of Arrow, of memory and of Python."""
    summary = run("file_list", 0, 30)
    assert (summary.cases, summary.failures) == (30, [])


def test_a_parquet_footer_that_makes_arrow_end_the_process_is_refused() -> None:
    summary = run("parquet", 423, 1)
    assert (dict(summary.counts), summary.failures) == ({"refused": 1}, [])


@pytest.mark.parametrize("case", [100, 423, 790, 1449, 1589, 3059])
def test_such_a_footer_is_refused_where_sizes_and_statistics_are_taken_from_it(seeds: Seeds, case: int) -> None:
    data = ParquetBytes(seeds).case(case)
    store = MemoryStore("data")
    store.put("t/part", data)
    file = DataFile(store, "t/part", len(data))
    for use in (read_checked_footer, footer_of, open_parquet):
        with pytest.raises(UnreadableFile):
            use(file)
    path = seeds.root / f"forged_{case}" / "part-0.parquet"
    path.parent.mkdir()
    path.write_bytes(data)
    listed = FileList.build(canonical_uri(str(path.parent)), [path.name], [len(data)], [1])
    reading = Reading.of("parquet", {}, [Column("id", "long")], "UTC", local_times=False)
    assert not facts_of(listed, reading, LocalStore(path.parent)).measured


@pytest.mark.parametrize("case", [58, 63, 360, 438])
def test_statistics_that_make_arrow_end_the_process_are_not_trusted(case: int) -> None:
    """They are shorter than their type."""
    summary = run("parquet_footer", case, 1)
    assert (dict(summary.counts), summary.failures) == ({"ok": 1}, [])


@pytest.mark.parametrize("case", [3_006_723, 3_007_898])
def test_an_orc_file_that_makes_arrow_end_the_process_is_refused_and_the_next_one_is_read(
    seeds: Seeds, case: int
) -> None:
    """Lengths in a stripe are forged: Arrow reads beyond its buffers."""
    for data, right in ((OrcBytes(seeds).case(case), None), (seeds.data_files("orc")[0].read_bytes(), 40)):
        store = MemoryStore("data")
        store.put("t/part", data)
        file = DataFile(store, "t/part", len(data))
        reading = Reading.of("orc", {}, [Column("name", "string")], "UTC", local_times=True)
        if right is None:
            with pytest.raises(UnreadableFile, match=r"memory://data/t/part .* was ended by SIG"):
                list(format_named("orc").read(file, reading))
        else:
            assert sum(located.records.num_rows for located in format_named("orc").read(file, reading)) == right


@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_a_damaged_data_file_is_unreadable_and_no_error_of_a_library(seeds: Seeds, format: str) -> None:
    sound = seeds.data_files(format)[0].read_bytes()
    for changed in (sound[:-1], sound[:100], sound[len(sound) // 2 :], b"\xff" * 200, sound[:-40] + bytes(40)):
        store = MemoryStore("data")
        store.put("t/part", changed)
        with pytest.raises(UnreadableFile):
            format_named(format).columns(DataFile(store, "t/part", len(changed)), {})


def test_a_record_of_no_bytes_is_read_as_one(tmp_path: Path) -> None:
    summary = run("csv", 323, 1)
    assert summary.failures == []


def test_a_damaged_index_gives_the_right_answer_with_one_warning(
    seeds: Seeds, caplog: pytest.LogCaptureFixture
) -> None:
    right = answers(grebe.open(str(seeds.table("parquet"))))
    for index in ("lookup", "sieve_name", "sieve_price", "skipping", "spatial"):
        file = seeds.content("parquet", index, "*.gix")[0]
        sound = file.read_bytes()
        file.write_bytes(hashlib.sha512(sound).digest() + sound[64:])
        caplog.clear()
        try:
            opened = grebe.open(str(seeds.table("parquet")), config=grebe.Config(cache_bytes=0))
            assert answers(opened) == right
        finally:
            file.write_bytes(sound)
        assert len([one for one in caplog.records if index in one.getMessage()]) <= 1


def test_the_seeds_are_what_the_fuzzers_think(seeds: Seeds) -> None:
    for format in ("parquet", "orc", "csv", "json"):
        opened = grebe.open(str(seeds.table(format)))
        assert opened.verify(deep=True).ok
        assert opened.files("name = 'name 7'").index == "lookup"
        assert opened.count() == 120


def test_a_manifest_of_iceberg_that_is_none_is_an_unreadable_file(seeds: Seeds) -> None:
    made = IcebergMetadata(seeds)
    manifest = sorted((made.table / "metadata").glob("*-m0.avro"))[0]
    sound = manifest.read_bytes()
    for broken in (b"", b"no Avro " * 20):
        manifest.write_bytes(broken)
        with pytest.raises(UnreadableFile, match="the metadata of") as refused:
            grebe.open(str(made.table))
        assert refused.value.code == "UNREADABLE_FILE_ICEBERG"
    manifest.write_bytes(sound)
    assert grebe.open(str(made.table)).count() == 20


@pytest.mark.parametrize("name", ["v9.gz.metadata.json", "v9.metadata.json.gz"])
def test_metadata_of_iceberg_may_be_packed_and_is_unpacked_to_a_limit(seeds: Seeds, name: str) -> None:
    made = IcebergMetadata(seeds)
    newest = sorted((made.table / "metadata").glob("*.metadata.json"))[-1].read_bytes()
    packed = made.table / "metadata" / name
    try:
        packed.write_bytes(gzip.compress(newest))
        assert grebe.open(str(made.table)).count() == 20
        packer = zlib.compressobj(1, wbits=16 + zlib.MAX_WBITS)
        spaces = b"".join(packer.compress(b" " * 2**20) for _ in range(257))
        packed.write_bytes(spaces + packer.compress(newest) + packer.flush())
        with pytest.raises(UnreadableFile, match="unpacks to more than") as refused:
            grebe.open(str(made.table))
        assert refused.value.code == "UNREADABLE_FILE_ICEBERG"
        packed.write_bytes(gzip.compress(newest)[:-9])
        with pytest.raises(UnreadableFile, match="cannot be unpacked"):
            grebe.open(str(made.table))
    finally:
        packed.unlink()


def test_a_manifest_of_iceberg_is_unpacked_block_by_block_to_a_limit(seeds: Seeds) -> None:
    made = IcebergMetadata(seeds)
    manifest = sorted((made.table / "metadata").glob("*-m0.avro"))[0]
    sound = manifest.read_bytes()
    sync = sound[-16:]
    header = sound[: sound.index(sync) + 16]
    assert b"deflate" in header
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    block = packer.compress(bytes(2**26 + 1)) + packer.flush()
    try:
        manifest.write_bytes(header + avro_long(1) + avro_long(len(block)) + block + sync)
        with pytest.raises(UnreadableFile, match="TooLarge") as refused:
            grebe.open(str(made.table))
        assert refused.value.code == "UNREADABLE_FILE_ICEBERG"
    finally:
        manifest.write_bytes(sound)


def test_a_manifest_of_iceberg_is_not_read_beyond_a_limit(seeds: Seeds) -> None:
    made = IcebergMetadata(seeds)
    manifest = sorted((made.table / "metadata").glob("*-m0.avro"))[0]
    sound = manifest.read_bytes()
    try:
        with manifest.open("ab") as file:
            file.truncate(2**30 + 1)
        with pytest.raises(UnreadableFile, match="let Iceberg rewrite its manifests") as refused:
            grebe.open(str(made.table))
        assert refused.value.code == "UNREADABLE_FILE_ICEBERG"
    finally:
        manifest.write_bytes(sound)


def avro_long(number: int) -> bytes:
    number, made = number << 1, bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def test_what_a_forged_log_says_of_an_index_sets_it_aside_and_the_answers_stay_right(seeds: Seeds) -> None:
    table, log = str(seeds.table("csv")), seeds.log("csv") / "log"
    right = answers(grebe.open(table))
    (log / "latest.json.gz").unlink(missing_ok=True)
    last = sorted(log.glob("0*.json"))[-1]
    sound = last.read_bytes()
    body = json.loads(sound.partition(b"\n")[0])
    (created,) = [one for one in body["changes"] if one["change"] == "IndexCreated" and one["name"] == "lookup"]
    for name, value in (
        ("include", 7),
        ("layout", {"buckets": ""}),
        ("reading", {"format": 1.5}),
        ("locators", [None]),
    ):
        kept = created["spec"]["properties"].get(name)
        created["spec"]["properties"][name] = value
        last.write_bytes(line_sealed(json.dumps(body).encode()))
        opened = grebe.open(table)
        assert answers(opened) == right
        opened.explain("name = 'name 7'")
        opened.verify(deep=True)
        created["spec"]["properties"][name] = kept
    last.write_bytes(sound)


def test_recorded_queries_and_statistics_that_are_none_count_for_nothing() -> None:
    store = MemoryStore("log")
    path = f"{blocks.FOLDER}/{1:015d}-{2:015d}-{'0' * 32}-merged.gix"
    sink = io.BytesIO()
    pq.write_table(pa.table({"query": [None], "at": [5]}), sink)
    for data in (sink.getvalue(), sink.getvalue()[:40], b"PAR1" + b"\xff" * 60 + b"PAR1"):
        store.put(path, sealed(data))
        assert (blocks.read(store).damaged, len(blocks.read(store).queries)) == ((path,), 0)
    column = {"path": ["a"], "nulls": 0.0, "distinct": 3.0, "numeric": True, "quantiles": "AAAA", "seen": ""}
    cases: list[Any] = [{"columns": [column], "rows": 3}, {"columns": 7, "rows": 3}, {"columns": [{}], "rows": 3}, []]
    for one in cases:
        store.put(statistics.PATH, sealed(json.dumps(one).encode()))
        assert statistics.load(store) is None


def test_a_field_of_a_parquet_schema_that_arrow_would_pass_over_is_refused_before_arrow_ends_the_process(
    seeds: Seeds,
) -> None:
    data = seeds.data_files("parquet")[0].read_bytes()
    # The repetition of `name`, an i32, as an i16: the column is required to Arrow then, and its histograms do not fit.
    forged = data.replace(b"\x15\x0c%\x02\x18\x04name", b"\x15\x0c$\x02\x18\x04name")
    assert forged != data
    store = MemoryStore("data")
    store.put("part.parquet", forged)
    with pytest.raises(UnreadableFile):
        format_named("parquet").columns(DataFile(store, "part.parquet", len(forged)), {})


def test_a_number_of_thousands_of_digits_in_text_is_none_unless_they_are_zeros() -> None:
    store = MemoryStore("data")
    data = b"1" * 5003 + b"\n-" + b"9" * 5003 + b"\n" + b"0" * 5003 + b"7\n-" + b"0" * 30 + b"9223372036854775808\n"
    store.put("part.csv", data)
    reading = Reading.of(
        "csv", format_named("csv").options.of_reading({}), [Column("id", "long")], "UTC", local_times=True
    )
    (located,) = format_named("csv").read(DataFile(store, "part.csv", len(data)), reading)
    assert located.records["id"].to_pylist() == [None, None, 7, -(2**63)]
