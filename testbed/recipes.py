"""How another process opens the same store: a recipe is small and can be pickled, an open store cannot."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from grebe.store.opening import open_store
from grebe.store.protocol import Store


@dataclass(frozen=True)
class StoreRecipe:
    uri: str
    storage_options: Mapping[str, str] = field(default_factory=dict)

    def open(self) -> Store:
        return open_store(self.uri, self.storage_options)
