"""The distribution: it builds and installs from a copy of the checkout without its history, and holds what it should."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project.tree import ROOT, files


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The project's files alone, as a download of them would be."""
    folder = tmp_path_factory.mktemp("copy")
    for path in files():
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    yield folder
    shutil.rmtree(folder)


def run(*command: str | Path, **options: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, **options)  # type: ignore[call-overload]  # passed on
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


def test_wheel_and_sdist_hold_the_package_and_not_the_checkout(copy: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path, copy)
    (wheel,), (sdist,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    inside = set(zipfile.ZipFile(wheel).namelist())
    assert {"grebe/__init__.py", "grebe/py.typed", "grebe/cli/main.py"} <= inside
    assert {name.split("/")[0] for name in inside if ".dist-info/" not in name} == {"grebe"}
    with tarfile.open(sdist) as archive:
        top = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert {"src", "LICENSE", "README.md", "pyproject.toml"} <= top
    assert not {"tests", "bench", "testbed", ".venv"} & top


def test_it_installs_by_pip_from_a_copy_without_history(copy: Path, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    run(*pip, "--target", tmp_path, ".", cwd=copy)
    program = "import grebe, pathlib; print(pathlib.Path(grebe.__file__).parent)"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    assert run(sys.executable, "-c", program, env=environment).strip() == str(tmp_path / "grebe")
    assert run(tmp_path / "bin" / "grebe", "--version", env=environment).startswith("grebe 0.")
