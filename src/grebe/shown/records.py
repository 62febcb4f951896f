"""Lists that a notebook shows as a table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from grebe.shown.html import block, paragraph, table

T = TypeVar("T")


class Records(list[T]):
    """A list of records like any other; `_repr_html_` shows these fields of them."""

    def __init__(self, items: Iterable[T], fields: Sequence[str], nothing: str) -> None:
        super().__init__(items)
        self._fields = fields
        self._nothing = nothing

    def _repr_html_(self) -> str:
        rows: list[Mapping[str, Any]] = [asdict(item) for item in self]  # type: ignore[call-overload]  # dataclasses
        shown = [field for field in self._fields if any(row[field] not in (None, (), "") for row in rows)]
        return block(table(shown, rows) if rows else paragraph(self._nothing))
