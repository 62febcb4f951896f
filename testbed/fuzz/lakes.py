"""Whole tables in which one object of an index or of the log is mutated: opened and asked as users do it."""

import math
import random
from pathlib import Path
from typing import Any

import grebe
from grebe.indexes.content import sealed
from testbed.fuzz.mutators import BINARY, DOCUMENT, TEXT, mutate
from testbed.fuzz.seeds import FORMATS, Seeds
from testbed.fuzz.target import Target, line_sealed

_PREDICATES = (
    "name = 'name 7'",
    "id = 17",
    "price > 12.0",
    "price = 4.625",
    "name LIKE '%me 4%'",
    "day IN (DATE '2024-01-14', DATE '2024-03-01')",
    "id < 5 OR name = 'name 3'",
)
_BOX, _POINT = (2.0, 2.0, 9.0, 9.0), (5.0, 5.0)


def answers(table: "grebe.Table") -> list[Any]:
    """All that a table is asked, in an order that does not depend on the way."""
    found: list[Any] = [sorted(table.scan(one)["id"].to_pylist()) for one in _PREDICATES]
    found.append(sorted(table.get("name", "name 21")["id"].to_pylist()))
    found.append(sorted(table.get_many("name", ["name 1", "name 2", None])["id"].to_pylist()))
    found.append([table.count(one) for one in _PREDICATES])
    found.append([table.exists(one) for one in _PREDICATES])
    found.append(sorted(table.within(_BOX, on=["x", "y"])["id"].to_pylist()))
    near = table.nearest(*_POINT, 3, on=["x", "y"]).select(["x", "y"]).to_pylist()
    found.append([math.dist(_POINT, (row["x"], row["y"])) for row in near])
    return found


class Lake(Target):
    """The objects of the log's folder, chosen by `objects`."""

    def __init__(self, seeds: Seeds) -> None:
        self._paths: list[tuple[str, Path]] = []
        super().__init__(seeds)
        self._right: dict[str, list[Any]] = {}

    def objects(self, format: str) -> list[Path]:
        return sorted(
            path for path in self.seeds.log(format).rglob("*") if path.is_file() and "alive" not in path.parts
        )

    def inputs(self) -> list[bytes]:
        self._paths = [(format, path) for format in FORMATS for path in self.objects(format)]
        return [path.read_bytes() for _, path in self._paths]

    def case(self, number: int) -> bytes:
        chance = random.Random(f"{type(self).__name__} {number}")
        place = chance.randrange(len(self._paths))
        return place.to_bytes(4, "little") + self.changed(chance, place)

    def changed(self, chance: random.Random, place: int) -> bytes:
        return mutate(chance, self.sound[place], self.sound, BINARY)

    def warm(self) -> None:
        for format in FORMATS:
            self._right[format] = answers(self._opened(format))

    def consume(self, data: bytes) -> str | None:
        place, changed = int.from_bytes(data[:4], "little"), data[4:]
        format, path = self._paths[place]
        path.write_bytes(changed)
        try:
            return self.ask(format)
        finally:
            path.write_bytes(self.sound[place])

    def _opened(self, format: str) -> "grebe.Table":
        return grebe.open(str(self.seeds.table(format)), config=grebe.Config(cache_bytes=0))

    def ask(self, format: str) -> str | None:
        opened = self._opened(format)
        if answers(opened) != self._right[format]:
            return "another answer"
        opened.verify(deep=True)
        opened.indexes()
        return None


class DamagedLake(Lake):
    """With all seals as they are: an answer is right, or there is none."""


class ForgedIndex(Lake):
    """Content of indexes past its seals. What it says may be wrong then, but it must not bring the process down."""

    def __init__(self, seeds: Seeds) -> None:
        super().__init__(seeds)
        sealed.digest = lambda data: _Anything()

    def objects(self, format: str) -> list[Path]:
        return [path for path in super().objects(format) if path.suffix == ".gix"]

    def changed(self, chance: random.Random, place: int) -> bytes:
        """As long as it was, since the log says so."""
        sound = self.sound[place]
        kept = chance.choice((0, 8))
        made = sound[:kept] + mutate(chance, sound[kept:], self.sound)
        return made[: len(sound)].ljust(len(sound), b"\0")

    def ask(self, format: str) -> str | None:
        opened = self._opened(format)
        answers(opened)
        opened.verify(deep=True)
        return None


class _Anything(bytes):
    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = bytes.__hash__


class ForgedLog(Lake):
    """The last entry, sealed again; the hint is gone, so that it is read."""

    def objects(self, format: str) -> list[Path]:
        log = self.seeds.log(format) / "log"
        (log / "latest.json.gz").unlink(missing_ok=True)
        return [sorted(log.glob("0*.json"))[-1]]

    def changed(self, chance: random.Random, place: int) -> bytes:
        line = self.sound[place].partition(b"\n")[0]
        return line_sealed(mutate(chance, line, [line], DOCUMENT))

    def ask(self, format: str) -> str | None:
        opened = self._opened(format)
        answers(opened)
        opened.verify(deep=True)
        opened.indexes()
        opened.history()
        return None


class ForgedData(Lake):
    """A data file of the table: others than the indexes know, so that it is read as a whole."""

    def objects(self, format: str) -> list[Path]:
        return self.seeds.data_files(format)

    def changed(self, chance: random.Random, place: int) -> bytes:
        return mutate(chance, self.sound[place], self.sound, TEXT)

    def ask(self, format: str) -> str | None:
        answers(self._opened(format))
        return None
