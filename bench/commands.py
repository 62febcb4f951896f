"""How long does the command line take from the prompt to the answer? Each command in a new process, as a shell runs it.

The rival is pyiceberg's command line, another Python program over a lake, with a catalog in a file of SQLite.
"""

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from sysconfig import get_path

import pyarrow as pa
import pyarrow.parquet as pq

import grebe
from bench._session import bench_session
from bench.harness import Contestant, Report, Scale, medians, timed
from testbed.packages import packages

_FILES = 20
_CASES = {"--help": "--help", "list": "list", "get": "describe"}
"""Ours -> the rival's that comes next to it: both of `get` and `describe` open one table."""


def run(scale: Scale, report: Report) -> None:
    runs, rows = scale.pick((5, 2_000), (31, 50_000))
    with tempfile.TemporaryDirectory() as folder:
        table = _indexed(Path(folder), rows)
        catalog = _catalog(Path(folder))
        ours = {"--help": ["--help"], "list": ["list", table], "get": ["get", table, "id", str(rows)]}
        theirs = {"--help": ["--help"], "list": ["list", "db"], "describe": ["describe", "db.events"]}
        cost = medians(
            {
                **{f"grebe {verb}": _command("grebe", line, {}) for verb, line in ours.items()},
                **{f"pyiceberg {verb}": _command("pyiceberg", line, catalog) for verb, line in theirs.items()},
            },
            runs,
        )
    for verb, other in _CASES.items():
        rival = f"pyiceberg {other}"
        report.add(f"grebe {verb}", "s", cost[f"grebe {verb}"], rival, cost[rival], runs)


def _indexed(folder: Path, rows: int) -> str:
    """A table of some files with an index, at that path."""
    path = folder / "events"
    path.mkdir()
    for number in range(_FILES):
        ids = pa.array(range(number * rows, (number + 1) * rows), pa.int64())
        pq.write_table(pa.table({"id": ids, "price": pa.array(map(float, range(rows)))}), path / f"{number}.parquet")
    with bench_session() as (spark, _):
        grebe.attach(spark).table(str(path)).create(grebe.Lookup("by_id", on="id"))
    return str(path)


def _catalog(folder: Path) -> dict[str, str]:
    """The environment under which the rival finds its catalog, which has one table."""
    warehouse = folder / "warehouse"
    warehouse.mkdir()
    environment = {
        "PYTHONPATH": str(packages("commands")),
        "PYICEBERG_CATALOG__DEFAULT__TYPE": "sql",
        "PYICEBERG_CATALOG__DEFAULT__URI": f"sqlite:///{warehouse}/catalog.db",
        "PYICEBERG_CATALOG__DEFAULT__WAREHOUSE": warehouse.as_uri(),
    }
    program = (
        "import pyarrow as pa; from pyiceberg.catalog import load_catalog; "
        "catalog = load_catalog('default'); catalog.create_namespace('db'); "
        "catalog.create_table('db.events', pa.schema({'id': pa.int64()}))"
    )
    _run([f"{get_path('scripts')}/python", "-c", program], environment)
    return environment


def _command(program: str, line: Sequence[str], environment: Mapping[str, str]) -> Contestant:
    return timed(partial(_run, [f"{get_path('scripts')}/{program}", *line], environment))


def _run(command: Sequence[str], environment: Mapping[str, str]) -> None:
    # Packages are compiled when they are installed; a checkout is by its first run, unless somebody has switched that off.
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, env={**compiled, **environment}, check=True, capture_output=True)
