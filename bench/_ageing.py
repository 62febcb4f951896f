"""Tables of a benchmark whose files come and go, and indexes that are as they were when they were made, again and again."""

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import grebe
from grebe.clock import SYSTEM

if TYPE_CHECKING:
    from grebe.indexes.kind import Kind

_CONTENT = ".gix"


@dataclass(frozen=True)
class AgeingTable:
    """The files of a table are links to others. Its indexes lie elsewhere, so that many states of them fit beside one table."""

    lake: "grebe.Lake"
    folder: Path
    indexes: Path
    made: list[Path] = field(default_factory=list)
    """States of the indexes that were put beside the table, the last one in use."""

    def hold(self, files: Iterable[Path]) -> None:
        """The table is just these files from now on."""
        wanted = {file.name: file for file in files}
        self.folder.mkdir(parents=True, exist_ok=True)
        there = {entry.name for entry in os.scandir(self.folder)}
        for name in there - wanted.keys():
            (self.folder / name).unlink()
        for name in wanted.keys() - there:
            os.link(wanted[name], self.folder / name)

    def create(self, *kinds: "Kind") -> None:
        """The indexes that `young` gives again; they stay as they are now."""
        self.lake.table(str(self.folder), location=str(self._first)).create(*kinds)

    def young(self) -> "grebe.LakeTable":
        """The table, with its indexes as they were made, whatever has become of them since."""
        location = self.indexes / SYSTEM.new_id()
        shutil.copytree(self._first, location, copy_function=_link_content)
        for older in self.made:
            self._make_room(older)
        self.made[:] = [location]
        return self.lake.table(str(self.folder), location=str(location))

    def _make_room(self, older: Path) -> None:
        """What all states have in common takes no room, and the session may have met it there first."""
        for file in older.rglob(f"*{_CONTENT}"):
            if not (self._first / file.relative_to(older)).exists():
                file.unlink()

    @property
    def _first(self) -> Path:
        return self.indexes / "first"


def _link_content(source: str, target: str) -> str:
    """Content is written once; what else there is of a log may be replaced, and is small."""
    if source.endswith(_CONTENT):
        os.link(source, target)
    else:
        shutil.copy2(source, target)
    return target
