"""What the log remembers of an index that keeps rows, taken apart: columns, condition, reading, and how the rows lie."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grebe.errors import CorruptIndex, CorruptLog, InvalidIndex
from grebe.files.untrusted import FOREIGN
from grebe.formats import Reading
from grebe.indexes import columns
from grebe.indexes.columns import Chosen
from grebe.indexes.kind import FILE_COLUMN, Layout
from grebe.log.entry import IndexSpec

_LINEAGE_TYPE = "integer"
_LOCATOR_TYPE = "long"


@dataclass(frozen=True, slots=True)
class Shape:
    on: tuple[Chosen, ...]
    include: tuple[Chosen, ...]
    buckets: int | None
    """As asked for; None: to be chosen."""
    lineage: bool
    where: str | None
    reading: Reading
    layout: Layout | None
    """Known once the content has been arranged."""
    locators: tuple[str, ...] = ()
    """Columns of the content that find a row again in its file."""

    @property
    def columns(self) -> tuple[Chosen, ...]:
        return (*self.on, *self.include)

    @property
    def fields(self) -> list[tuple[str, str]]:
        """Names and types of the content's columns: those of the table, then the lineage."""
        own = [(column.content, column.type) for column in self.columns]
        lineage = [(FILE_COLUMN, _LINEAGE_TYPE)] if self.lineage else []
        return [*own, *lineage, *((name, _LOCATOR_TYPE) for name in self.locators)]


def shape_of(index: str, spec: IndexSpec) -> Shape:
    known = spec.properties
    try:
        reading = Reading.from_dict(known["reading"])
        return Shape(
            on=columns.recorded(spec.columns, reading, index),
            include=columns.recorded(known["include"], reading, index),
            buckets=known["buckets"],
            lineage=known["lineage"],
            where=known["where"],
            reading=reading,
            layout=_layout(known["layout"]) if "layout" in known else None,
            locators=tuple(known.get("locators", ())),
        )
    except (*FOREIGN, CorruptLog, InvalidIndex) as problem:
        raise CorruptIndex(
            f"what the log says of index {index} does not fit together ({problem}); create it anew", detail="SPEC"
        ) from problem


def _layout(known: Mapping[str, Any]) -> Layout:
    by, order, along = (tuple(known.get(name, ())) for name in ("bucket_by", "sort_by", "along"))
    return Layout(int(known["buckets"]), by, order, along, tuple(map(float, known.get("sides", ()))))
