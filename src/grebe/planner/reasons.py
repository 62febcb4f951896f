"""Why an index is not used, as data: a code, arguments, and a sentence that says what to do about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Reason:
    code: str
    index: str
    """Empty if it is about a relation as a whole, whatever indexes there are."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    relation: str = ""
    """The table, as the query names it."""

    @property
    def sentence(self) -> str:
        return self.code
