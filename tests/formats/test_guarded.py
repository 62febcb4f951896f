"""ORC is decoded in guarded processes: whatever becomes of such a process, this one goes on."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pytest

import grebe
from grebe.errors import SourceChanged, UnreadableFile
from grebe.formats import DataFile
from grebe.formats.guarded import POOL, DecoderPool, Limits, decode_guarded
from grebe.formats.orc import ORC
from grebe.formats.orc_decoder import Request, decode
from grebe.store.local import LocalStore
from grebe.store.protocol import ObjectInfo, ObjectMissing
from tests.formats.reading_back import all_rows, data_file, plain, reading_of

ROWS = pa.table({"id": pa.array(range(1000)), "name": [f"name {row}" for row in range(1000)]})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    pa.orc.write_table(ROWS, tmp_path / "t.orc")
    return tmp_path / "t.orc"


@pytest.fixture
def pool() -> Iterator[DecoderPool]:
    made = DecoderPool(2)
    yield made
    made.end()


def read(path: Path, pool: DecoderPool, meanwhile: Callable[[], None] = lambda: None) -> pa.Table:
    """All of the one stripe of a file; `meanwhile` is called when the decoder asks for bytes."""
    data = path.read_bytes()

    def ask(start: int, size: int) -> bytes:
        meanwhile()
        return data[start : start + size]

    names = pa.orc.ORCFile(path).schema.names
    return decode_guarded(Request(len(data), [], [0], names), ask, "file:/t.orc", pool)


def pid(pool: DecoderPool) -> int:
    (only,) = pool.all
    return only.process.pid


def test_a_crash_of_the_decoder_is_an_unreadable_file_and_the_next_read_works(file: Path, pool: DecoderPool) -> None:
    assert read(file, pool) == ROWS
    first = pid(pool)
    with pytest.raises(UnreadableFile, match=r"file:/t\.orc .* was ended by SIGSEGV") as refused:
        read(file, pool, lambda: os.kill(first, signal.SIGSEGV))
    assert refused.value.code == "UNREADABLE_FILE_ORC"
    assert read(file, pool) == ROWS
    assert pid(pool) != first


def test_a_decoder_that_died_between_two_reads_is_replaced(file: Path, pool: DecoderPool) -> None:
    assert read(file, pool) == ROWS
    pool.all[0].process.kill()
    pool.all[0].process.wait()
    assert read(file, pool) == ROWS


def test_a_decoder_that_hangs_is_given_up(file: Path) -> None:
    pool = DecoderPool(1, Limits(waits=0.05))
    with pytest.raises(UnreadableFile, match=r"did not answer in time.*guard_decoders=false"):
        read(file, pool, lambda: os.kill(pid(pool), signal.SIGSTOP))
    assert pool.all == ()
    assert read(file, POOL) == ROWS


def test_a_request_has_limits_of_memory_and_of_the_processor(tmp_path: Path) -> None:
    zeros = pa.table({"zero": np.zeros(12_000_000, np.int64)})
    pa.orc.write_table(zeros, tmp_path / "t.orc", stripe_size=1 << 30)
    limited, limits = DecoderPool(1, Limits(memory=64 << 20)), dict[int, int]()

    def look() -> None:
        for what in (resource.RLIMIT_CPU, resource.RLIMIT_AS):
            limits[what] = resource.prlimit(pid(limited), what)[0]

    with pytest.raises(UnreadableFile, match=r"far more memory.*guard_decoders=false"):
        read(tmp_path / "t.orc", limited, look)
    assert 10 <= limits[resource.RLIMIT_CPU] <= 20
    assert 0 < limits[resource.RLIMIT_AS] < 2 << 30
    assert read(tmp_path / "t.orc", POOL).num_rows == len(zeros)
    limited.end()


def test_many_threads_share_few_processes(file: Path, pool: DecoderPool) -> None:
    with ThreadPoolExecutor(8) as threads:
        for found in threads.map(lambda _: read(file, pool), range(60)):
            assert found == ROWS
    assert len(pool.all) <= 2


def test_a_fork_starts_its_own_decoder_and_keeps_none_alive(file: Path) -> None:
    POOL.end()
    assert all_rows(ORC, data_file(file), reading_of(ORC, data_file(file))) == plain(ROWS)
    (before,) = POOL.all
    ready, stop = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        try:
            right = POOL.all == () and all_rows(ORC, data_file(file), reading_of(ORC, data_file(file))) == plain(ROWS)
            right = right and before not in POOL.all
            os.write(ready[1], b"1" if right else b"0")
            os.close(stop[1])
            os.read(stop[0], 1)
        finally:
            os._exit(0)
    assert os.read(ready[0], 1) == b"1"
    assert all_rows(ORC, data_file(file), reading_of(ORC, data_file(file))) == plain(ROWS)
    POOL.end()
    assert before.process.returncode == 0, "it saw the end of its input, though the fork is still there"
    for end in (*stop, *ready):
        os.close(end)
    os.waitpid(child, 0)


def test_a_decoder_ends_with_a_process_that_is_killed(file: Path) -> None:
    script = (
        "import os, sys; from grebe.formats.guarded import POOL; from grebe.formats.orc import ORC;"
        "from tests.formats.reading_back import data_file; from pathlib import Path;"
        "ORC.columns(data_file(Path(sys.argv[1])), {}); print(POOL.all[0].process.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run([sys.executable, "-c", script, str(file)], env=environment, capture_output=True, check=False)
    assert ran.returncode == -signal.SIGKILL
    while _runs(int(ran.stdout)):
        time.sleep(0.01)


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_nothing_of_the_environment_reaches_the_decoder(
    file: Path, pool: DecoderPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("HOME_OF_A_TOKEN", "secret")
    monkeypatch.setenv("TZDIR", "/usr/share/zoneinfo")
    seen: list[bytes] = []
    assert read(file, pool, lambda: seen.append(Path(f"/proc/{pid(pool)}/environ").read_bytes())) == ROWS
    names = {one.partition(b"=")[0].decode() for one in seen[0].split(b"\0") if one}
    assert names <= {
        *("ARROW_DEFAULT_MEMORY_POOL", "MALLOC_ARENA_MAX", "OMP_NUM_THREADS"),
        *("CONDA_PREFIX", "LD_LIBRARY_PATH", "TZ", "TZDIR"),
    }
    assert b"secret" not in seen[0]


def test_the_setting_decides_where_files_are_decoded(file: Path) -> None:
    for guarded, processes in ((False, 0), (True, 1)):
        POOL.end()
        opened = grebe.open(str(file.parent), config=grebe.Config(guard_decoders=guarded))
        assert (opened.count(), len(opened.get("id", 7))) == (1000, 1)
        assert min(1, len(POOL.all)) == processes


def test_text_of_any_bytes_is_read_in_both_ways(tmp_path: Path) -> None:
    odd = pa.array([b"\xff\xfe", b"a", None], pa.binary()).view(pa.string())
    rows = pa.table({"s": odd, "l": pa.ListArray.from_arrays([0, 1, 2, 3], odd)})
    rows = rows.append_column("m", pa.MapArray.from_arrays([0, 1, 2, 2], odd[:2], odd[:2]))
    rows = rows.append_column("r", pa.StructArray.from_arrays([odd], ["x"]))
    pa.orc.write_table(rows, tmp_path / "t.orc")
    data = (tmp_path / "t.orc").read_bytes()
    request = Request(len(data), [(0, data)], [0], rows.column_names)
    assert decode_guarded(request, _no_more, "t") == decode(request, _no_more)


def _no_more(start: int, size: int) -> bytes:
    raise AssertionError("all bytes are there")


class Failing(LocalStore):
    """Loses its files behind the first read."""

    reads = 0

    def get_ranges(
        self, path: str, ranges: Sequence[tuple[int, int]], expected: ObjectInfo | None = None
    ) -> list[bytes]:
        self.reads += 1
        if self.reads > 1:
            raise ObjectMissing(path)
        return super().get_ranges(path, ranges, expected)


@pytest.mark.parametrize("guarded", [True, False])
def test_bytes_that_a_decoder_lacks_are_read_for_it_and_errors_stay_what_they_are(
    tmp_path: Path, guarded: bool
) -> None:
    wide = pa.table({f"column {number:05d}": [number] for number in range(6000)})
    pa.orc.write_table(wide, tmp_path / "t.orc", compression="uncompressed")
    size = (tmp_path / "t.orc").stat().st_size
    found = ORC.columns(DataFile(LocalStore(tmp_path), "t.orc", size, guarded=guarded), {})
    assert [column.name for column in found] == wide.column_names
    with pytest.raises(SourceChanged):
        ORC.columns(DataFile(Failing(tmp_path), "t.orc", size, guarded=guarded), {})
