"""Older versions of lake tables on the command line."""

import json
from pathlib import Path

import pyarrow as pa
from click.testing import CliRunner

from grebe.cli.main import main


def test_a_version_is_asked_for_by_number_or_by_time(tmp_path: Path) -> None:
    from deltalake import write_deltalake

    path = str(tmp_path / "t")
    for number in range(2):
        write_deltalake(path, pa.table({"id": [number], "v": ["x"]}), mode="append")

    def rows(*arguments: str) -> list[dict[str, object]]:
        found = CliRunner().invoke(main, ["get", path, "id", "1", "--json", *arguments])
        assert found.exit_code == 0, found.output
        read: list[dict[str, object]] = json.loads(found.stdout)
        return read

    assert rows() == rows("--version", "1") == rows("--timestamp", "2099-01-01") == [{"id": 1, "v": "x"}]
    assert rows("--version", "0") == []
    failed = CliRunner().invoke(main, ["files", path, "id = 1", "--version", "7"])
    assert (failed.exit_code, "no version 7" in failed.output) == (1, True)
