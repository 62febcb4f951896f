"""Kinds that let something happen at a chosen moment of their own making."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grebe.indexes.covering.spec import Covering
from grebe.indexes.kind import Arranged, Rows
from grebe.log.entry import ContentFile, IndexSpec
from grebe.store.protocol import Store


def nothing(*_: Any) -> None:
    pass


@dataclass(frozen=True)
class Disturbed(Covering):
    """`reading` is called before the rows are read, `written` once the content lies there."""

    reading: Callable[[], object] = nothing
    written: Callable[[], object] = nothing
    lose: bool = False
    """Some rows are lost on the way."""

    def arranged(self, spec: IndexSpec, rows: Rows) -> Arranged:
        self.reading()
        made = super().arranged(spec, rows)
        return Arranged(made.frame.limit(1), made.options, made.properties) if self.lose else made

    def described(self, spec: IndexSpec, folder: str, store: Store) -> tuple[ContentFile, ...]:
        content = super().described(spec, folder, store)
        self.written()
        return content


def content_files(lake: Path, table: str) -> set[str]:
    """All objects below the folder of a table's content, with their paths as in the log."""
    root = lake / "_grebe" / table
    return {str(path.relative_to(root)) for path in (root / "data").rglob("*") if path.is_file()}
