"""One version of an index, as those that prune have it in hand: what the log says of it, and where its content lies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

from grebe.files import FileIds
from grebe.formats import Reading
from grebe.indexes.columns import Chosen
from grebe.log.states import IndexState
from grebe.predicate.tree import Path
from grebe.store.protocol import Store


class HasColumns(Protocol):
    """What the log remembers of an index, taken apart."""

    @property
    def reading(self) -> Reading: ...

    @property
    def columns(self) -> Sequence[Chosen]: ...


ShapeOf = TypeVar("ShapeOf", bound=HasColumns)


@dataclass(frozen=True)
class IndexVersion(Generic[ShapeOf]):
    """The part of `indexes.kind.Pruner` that is the same for all. Reads nothing."""

    state: IndexState = field(repr=False)
    shape: ShapeOf = field(repr=False)
    store: Store = field(repr=False)
    _known: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """What every question needs of the content, once it has been read."""

    @property
    def name(self) -> str:
        return self.state.name

    @property
    def reading(self) -> Reading:
        return self.shape.reading

    @cached_property
    def covered(self) -> FileIds:
        return self.state.held

    @cached_property
    def columns(self) -> Mapping[Path, str]:
        return {column.path: column.content for column in self.shape.columns}

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.state.content)

    @cached_property
    def rows(self) -> int:
        return sum(file.rows for file in self.state.content)
