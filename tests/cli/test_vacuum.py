"""`grebe vacuum` and `grebe cancel`: bytes out of use go, and operations that died are ended."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from grebe.cli.main import main
from grebe.log.commit import Log
from grebe.log.entry import Verb
from grebe.log.operation import begin
from grebe.store.local import LocalStore

pytestmark = pytest.mark.spark


@pytest.fixture
def table(indexed: str, tmp_path: Path) -> str:
    """A copy, as these verbs change it."""
    folder = Path(indexed).parent
    shutil.copytree(folder, tmp_path / "lake")
    return indexed


def grebe(*arguments: str) -> tuple[int, Any]:
    result = CliRunner().invoke(main, [*arguments, "--json"])
    return result.exit_code, json.loads(result.stdout) if result.exit_code == 0 else result.output


def test_a_deleted_index_is_removed_for_good(table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "lake" / "_grebe" / "people"
    log = str(folder)
    name = next(iter(Log(LocalStore(folder)).open().state.indexes))
    assert grebe("delete", table, name, "--location", log)[0] == 0
    code, waiting = grebe("vacuum", table, "--location", log)
    assert (code, waiting["indexes"], waiting["objects"]) == (0, [name], 0)
    assert waiting["waiting"] > 0
    monkeypatch.setenv("GREBE_VACUUM_RETENTION_SECONDS", "0")
    code, rehearsed = grebe("vacuum", table, "--location", log, "--dry-run")
    assert (code, rehearsed["dry_run"], len(rehearsed["paths"])) == (0, True, waiting["waiting"])
    assert all(Path(path.removeprefix("file://")).is_file() for path in rehearsed["paths"])
    code, found = grebe("vacuum", table, "--location", log)
    assert (code, found["waiting"]) == (0, 0)
    assert found["objects"] == waiting["waiting"]
    assert not list((tmp_path / "lake" / "_grebe" / "people" / "data" / name).rglob("*.gix"))


def test_a_retention_below_an_hour_is_refused_unless_it_is_asked_for(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = str(tmp_path / "lake" / "_grebe" / "people")
    monkeypatch.setenv("GREBE_VACUUM_RETENTION_SECONDS", "60")
    code, said = grebe("vacuum", table, "--location", log)
    assert code == 1
    assert "INVALID_CONFIG_RETENTION" in said
    monkeypatch.setenv("GREBE_VACUUM_RETENTION_CHECK", "false")
    assert grebe("vacuum", table, "--location", log)[0] == 0


def test_an_operation_is_ended(table: str, tmp_path: Path) -> None:
    lying = tmp_path / "lake" / "_grebe" / "people"
    folder = str(lying)
    log = Log(LocalStore(lying)).open()
    name = next(iter(log.state.indexes))
    running = begin(log, Verb.REFRESH, [name])
    assert grebe("cancel", table, name, "--location", folder) == (0, {"name": name, "ended": ["refresh"]})
    running.rollback("over")
    assert grebe("cancel", table, name, "--location", folder)[1]["ended"] == []
    code, said = grebe("cancel", table, "nobody", "--location", folder)
    assert code == 1
    assert "no index nobody" in said
