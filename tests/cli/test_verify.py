"""`grebe verify` and `grebe repair`: whether the files of the indexes are as they were written, and making them so."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from grebe.cli.main import main

pytestmark = pytest.mark.spark


def grebe(*arguments: str, verb: str = "verify") -> Result:
    return CliRunner().invoke(main, [verb, *arguments])


@pytest.mark.parametrize("options", [["--deep"], ["--deep", "--spark"], []])
def test_sound_files_are_ok(indexed: str, options: list[str]) -> None:
    result = grebe(indexed, *options, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"ok": True, "findings": [], "leftovers": [], "unchecked": []}
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
    (log / "data" / "left.gix").write_bytes(b"")
    said = grebe(indexed, "--location", str(log)).output
    assert "`grebe repair` mends it" in said
    assert "for `grebe vacuum` to remove: 1 objects" in said
    (mended,) = json.loads(grebe(indexed, "--no-deep", "--location", str(log), "--json", verb="repair").stdout)
    assert mended["name"] == damaged.relative_to(log).parts[1]
    assert json.loads(grebe(indexed, "--location", str(log), "--json").stdout)["ok"]
    assert "Nothing to mend" in grebe(indexed, "--no-deep", "--location", str(log), verb="repair").output
