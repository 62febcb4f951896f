"""A lake whose tables change after they were indexed: a tenth is appended, some files go, some are rewritten.

Tables are folders of files that are named by number, `<table>.<number>.<suffix>`.
"""

from dataclasses import dataclass
from pathlib import Path

from testbed.cached import working_copy

_DELETED = {"lineitem": 2, "orders": 1, "customer": 1}
_REWRITTEN = {"lineitem": 1, "orders": 1, "partsupp": 1, "part": 1}


@dataclass(frozen=True)
class YoungLake:
    """A copy of generated tables, the last tenth of their files (at least one of several) not yet there."""

    folder: Path
    kept_back: Path

    @staticmethod
    def of(data: Path, target: Path) -> "YoungLake":
        lake = YoungLake(working_copy(data, target / "lake"), target / "later")
        for table in _folders(lake.folder):
            files = numbered(table)
            later = lake.kept_back / table.name
            later.mkdir(parents=True)
            for file in files[len(files) - len(files) // 11 - (2 <= len(files) < 11) :]:
                file.replace(later / file.name)
        return lake

    def append(self) -> None:
        """What was kept back arrives, as new files."""
        for table in _folders(self.kept_back):
            for file in numbered(table):
                file.replace(self.folder / table.name / file.name)

    def age(self) -> None:
        """Appends, takes a few files away, and writes a few anew under their names with fewer rows in another order."""
        self.append()
        for table in _folders(self.folder):
            files = numbered(table)
            deleted, rewritten = _DELETED.get(table.name, 0), _REWRITTEN.get(table.name, 0)
            for file in files[1 : 1 + deleted]:
                file.unlink()
            for file in files[1 + deleted : 1 + deleted + rewritten]:
                _rewrite(file)


def numbered(table: Path) -> list[Path]:
    """The files of a table, in the order of their numbers."""
    return sorted(table.iterdir(), key=lambda file: int(file.name.split(".")[-2]))


def _folders(lake: Path) -> list[Path]:
    return sorted(path for path in lake.iterdir() if not path.name.startswith("_"))


def _rewrite(file: Path) -> None:
    """Every third row goes, the others come in reverse order. The new file takes the place of the old one in one step."""
    draft = file.with_name(f".{file.name}.draft")
    if file.suffix == ".csv":
        header, *rows = file.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [row for number, row in enumerate(rows) if number % 3]
        draft.write_text(header + "".join(reversed(kept)), encoding="utf-8")
    else:
        import duckdb

        numbered_rows = f"SELECT * EXCLUDE file_row_number FROM read_parquet('{file}', file_row_number = true)"
        kept_rows = f"{numbered_rows} WHERE file_row_number % 3 > 0 ORDER BY file_row_number DESC"
        duckdb.connect().execute(f"COPY ({kept_rows}) TO '{draft}' (FORMAT parquet)")
    draft.replace(file)
