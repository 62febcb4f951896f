"""`grebe verify`: whether the files of the indexes are as they were written."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from grebe.cli.main import main

pytestmark = pytest.mark.spark


def grebe(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["verify", *arguments])


def test_sound_files_are_ok(indexed: str) -> None:
    result = grebe(indexed, "--deep", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"ok": True, "findings": []}
    assert "No faults" in grebe(indexed).output


def test_a_damaged_file_is_named_and_the_exit_code_says_so(indexed: str, tmp_path: Path) -> None:
    table = Path(indexed)
    log = tmp_path / "log"
    shutil.copytree(table.parent / "_grebe" / table.name, log)
    damaged = next(log.rglob("directory.gix"))
    damaged.write_bytes(b"nothing")
    result = grebe(indexed, "--location", str(log), "--json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert not report["ok"]
    assert str(damaged.relative_to(log)) in [finding["path"] for finding in report["findings"]]
    assert "refresh --mode full" in grebe(indexed, "--location", str(log)).output
