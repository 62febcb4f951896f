"""Formats and sources of other packages work by being installed, without any edit of Grebe's."""

import hashlib
import http.server
import importlib
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from grebe.errors import InvalidConfig, TableNotFound, UnreadableFile, Unsupported
from grebe.files import diff
from grebe.formats import format_named
from grebe.sources import open_source
from tests.formats.reading_back import all_rows, data_file
from tests.sources.whole_table import read_without_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("plugins")  # installed once
HERE = Path(__file__).parent


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Both packages, built and installed by pip into a folder of their own."""
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    packages = [str(HERE / name) for name in ("sequencefile", "weblist")]
    subprocess.run([*command, "--target", str(target), *packages], check=True)
    sys.path.append(str(target))
    importlib.invalidate_caches()
    yield
    sys.path.remove(str(target))
    for name in [name for name in sys.modules if name.partition(".")[0] in ("grebe_sequencefile", "grebe_weblist")]:
        del sys.modules[name]


PAIRS = [(f"key {number} ü", number * 7) for number in range(3000)]
CODECS = {
    "plain": (None, "RECORD"),
    "by record": ("org.apache.hadoop.io.compress.DefaultCodec", "RECORD"),
    "by block": ("org.apache.hadoop.io.compress.DefaultCodec", "BLOCK"),
    "by block, gzip": ("org.apache.hadoop.io.compress.GzipCodec", "BLOCK"),
}


@pytest.mark.spark
@pytest.mark.parametrize("name", CODECS)
def test_sequence_files_of_spark_are_a_table(spark: "SparkSession", tmp_path: Path, name: str) -> None:
    codec, kind = CODECS[name]
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    configuration.set("mapreduce.output.fileoutputformat.compress.type", kind)
    configuration.set("io.seqfile.compress.blocksize", "5000")
    folder = tmp_path / "written"
    spark.sparkContext.parallelize(PAIRS, 2).saveAsSequenceFile(str(folder), codec)
    for number, path in enumerate(sorted(folder.glob("part-*"))):
        path.rename(folder / f"{number}.seq")
    source = open_source(folder)
    assert source.format.name == "sequencefile"
    assert source.format.locator.fields == ("position", "number")
    columns, rows = read_without_spark(source)
    assert columns == [("key", "string"), ("value", "integer")]
    assert sorted(rows) == sorted(PAIRS)
    reading = source.reading(source.files())
    found = [row for file in source.data_files(source.files()) for row in all_rows(source.format, file, reading)]
    assert sorted(found) == sorted(PAIRS)


def test_a_damaged_sequence_file_is_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "a.seq"
    path.write_bytes(b"SEQ\x05 of another version")
    with pytest.raises(UnreadableFile, match="version 6"):
        open_source(tmp_path).schema()


class Ranges(http.server.SimpleHTTPRequestHandler):
    """Serves parts of files, as web servers do and Python's own does not."""

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if asked is None or not path.is_file():
            super().do_GET()
            return
        start, last, data = int(asked[1]), int(asked[2]), path.read_bytes()
        self.send_response(http.HTTPStatus.PARTIAL_CONTENT)
        self.send_header("Content-Range", f"bytes {start}-{min(last, len(data) - 1)}/{len(data)}")
        self.send_header("Content-Length", str(len(data[start : last + 1])))
        self.end_headers()
        self.wfile.write(data[start : last + 1])

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Ranges, directory=str(tmp_path))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def publish(folder: Path, *versions: dict[str, str]) -> None:
    entries: list[list[dict[str, str | int]]] = []
    for files in versions:
        entries.append([])
        for name, text in files.items():
            (folder / name).write_text(text)
            entries[-1].append({"path": name, "size": len(text), "etag": hashlib.sha256(text.encode()).hexdigest()})
    (folder / "manifest.json").write_text(json.dumps({"format": "csv", "versions": entries}))


def test_a_list_of_files_behind_a_web_server_is_a_table_with_versions(web: str, tmp_path: Path) -> None:
    (tmp_path / "prices").mkdir()
    publish(tmp_path / "prices", {"a.csv": "x,1\n"}, {"a.csv": "x,1\n", "b c.csv": "y,2\nz,3\n"})
    source = open_source(f"{web}/prices")
    assert (source.kind, source.name, source.version()) == ("weblist", "prices", 1)
    assert read_without_spark(source) == ([("_c0", "string"), ("_c1", "string")], [("x", "1"), ("y", "2"), ("z", "3")])
    assert source.at(0).files().paths().to_pylist() == ["a.csv"]
    change = diff(source.at(0).files(), source.files())
    assert change.added.paths().to_pylist() == ["b c.csv"]
    assert change.unchanged.paths().to_pylist() == ["a.csv"]
    with pytest.raises(Unsupported, match="versions 0 to 1"):
        source.at(2)


def test_a_web_server_without_a_list_is_no_table(web: str) -> None:
    with pytest.raises(TableNotFound, match=r"manifest\.json"):
        open_source(f"{web}/nothing", format="weblist")


def test_a_package_that_cannot_be_loaded_is_named_when_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And hurts nobody else."""
    broken = tmp_path / "broken-1.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (broken / "entry_points.txt").write_text(
        "[grebe.formats]\nbroken = no_such_module:FORMAT\npartial = json:JSONDecoder\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidConfig, match=r"\[INVALID_CONFIG_PLUG_IN\].*no_such_module"):
        format_named("broken")
    with pytest.raises(InvalidConfig, match=r"\[INVALID_CONFIG_PLUG_IN\].*lacks suffixes"):
        format_named("partial")
    assert format_named("parquet").name == "parquet"


def test_a_file_of_a_third_partys_suffix_needs_no_name_of_the_format(tmp_path: Path) -> None:
    (tmp_path / "x.seq").write_bytes(b"SEQ")
    assert open_source(tmp_path / "x.seq").format.name == "sequencefile"
    with pytest.raises(UnreadableFile):
        format_named("sequencefile").columns(data_file(tmp_path / "x.seq"), {})
