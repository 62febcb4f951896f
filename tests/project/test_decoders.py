"""Bytes of a store reach the decoders of Arrow in the listed modules only, where they are checked first."""

import ast
from pathlib import Path

import pytest

from tests.project.tree import Module, module, modules

DECODERS = {
    "pyarrow.parquet": {
        "ParquetDataset",
        "ParquetFile",
        "read_metadata",
        "read_pandas",
        "read_schema",
        "read_table",
    },
    "pyarrow.orc": {"ORCFile", "read_table"},
    "pyarrow.ipc": {
        "RecordBatchFileReader",
        "RecordBatchStreamReader",
        "MessageReader",
        "open_file",
        "open_stream",
        "read_message",
        "read_pandas",
        "read_record_batch",
        "read_schema",
        "read_tensor",
    },
    "pyarrow.json": {"open_json", "read_json"},
    "pyarrow.csv": {"CSVStreamingReader", "open_csv", "read_csv"},
    "pyarrow.dataset": {"FileSystemDataset", "dataset", "parquet_dataset"},
    "pyarrow.feather": {"read_feather", "read_table"},
}
"""By module of Arrow what makes objects of bytes."""
MODULES = {
    # The one place for Parquet: `structure` has checked it before.
    "grebe.formats.parquet_file": {"pyarrow.parquet"},
    # Files that are put together there, of pages that were checked.
    "grebe.formats.parquet_pages.mini_file": {"pyarrow.parquet"},
    # The schema that Arrow keeps in a footer: Arrow checks it as a whole.
    "grebe.formats.parquet_pages.schema": {"pyarrow.ipc"},
    # The guarded process.
    "grebe.formats.orc_decoder": {"pyarrow.orc"},
    # Streams whose frames were walked before.
    "grebe.files.arrow_stream": {"pyarrow.ipc"},
    # Lines of text, with a schema of ours.
    "grebe.formats.json_lines": {"pyarrow.json"},
    # What this process wrote into a file without a name, and what workers of Spark sent.
    "grebe.lookup.pin.build": {"pyarrow.ipc"},
    "grebe.indexes.layout.build": {"pyarrow.ipc"},
    # Files that the demo has just made, read as a user without Grebe would.
    "grebe.cli.demos.needle": {"pyarrow.parquet", "pyarrow.dataset"},
    "grebe.cli.demos.queries": {"pyarrow.parquet"},
}
"""Who may use which."""


def decoders_used(of: Module) -> list[tuple[int, str, str]]:
    """Line, module of Arrow, and name of every decoder that a module names."""
    names = {"pa": "pyarrow"}
    used = []
    for node in ast.walk(of.tree):
        if isinstance(node, ast.Import):
            names |= {one.asname or one.name.partition(".")[0]: one.name for one in node.names if one.asname}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    for node in ast.walk(of.tree):
        if isinstance(node, ast.Attribute | ast.Name):
            whole, _, name = _dotted(node, names).rpartition(".")
            if name in DECODERS.get(whole, ()):
                used.append((node.lineno, whole, name))
    return used


def _dotted(node: ast.expr, names: dict[str, str]) -> str:
    match node:
        case ast.Name(id=name):
            return names.get(name, name)
        case ast.Attribute(value=value, attr=name):
            return f"{_dotted(value, names)}.{name}"
    return ""


def decoder_faults(of: Module) -> list[str]:
    allowed = MODULES.get(of.name, set())
    return [
        f"{of.name}:{line} uses {whole}.{name}; see grebe.formats.parquet_file, or add a check and list it here"
        for line, whole, name in decoders_used(of)
        if whole not in allowed
    ]


def test_only_the_listed_modules_decode_bytes_with_arrow() -> None:
    assert [fault for of in modules() for fault in decoder_faults(of)] == []


def test_each_listed_module_does() -> None:
    """The list does not outlive what it is for."""
    used = {of.name: {whole for _, whole, _ in decoders_used(of)} for of in modules()}
    assert {name: used.get(name) for name in MODULES} == MODULES


@pytest.mark.parametrize(
    "code",
    [
        "import pyarrow.parquet as pq\npq.ParquetFile(x)",
        "import pyarrow as pa\npa.parquet.read_table(x)",
        "from pyarrow import parquet\nread = parquet.read_metadata",
        "from pyarrow.parquet import ParquetFile as Opened\nOpened(x)",
        "import pyarrow.parquet\npyarrow.parquet.read_schema(x)",
        "import pyarrow as pa\ndef f():\n    return pa.ipc.open_stream(x)",
        "from pyarrow import dataset as ds\nds.dataset(x)",
    ],
)
def test_a_decoder_elsewhere_is_found(tmp_path: Path, code: str) -> None:
    assert len(decoder_faults(written(tmp_path, code))) == 1


def test_a_writer_is_no_decoder(tmp_path: Path) -> None:
    code = "import pyarrow.parquet as pq\ndef f(x: pq.FileMetaData) -> None:\n    pq.write_table(x, x)"
    assert decoder_faults(written(tmp_path, code)) == []


def written(folder: Path, code: str) -> Module:
    path = folder / "grebe" / "log" / "x.py"
    path.parent.mkdir(parents=True)
    path.write_text(code)
    return module(path, folder / "grebe")
