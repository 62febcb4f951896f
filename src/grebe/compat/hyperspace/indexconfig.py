"""What to index, as Hyperspace's programs say it."""
# ruff: noqa: N815 - the names are Hyperspace's

from collections.abc import Sequence
from dataclasses import dataclass

from grebe.compat.hyperspace.settings import Settings
from grebe.indexes.covering.spec import Covering
from grebe.indexes.zorder.spec import ZOrder


@dataclass(frozen=True)
class CoveringIndexConfig:
    """A copy of some columns, laid out by the indexed ones. White space in the name becomes an underscore, as in Hyperspace."""

    indexName: str
    indexedColumns: Sequence[str]
    includedColumns: Sequence[str] = ()

    def kind(self, settings: Settings) -> Covering | ZOrder:
        """The index of ours that does the same."""
        name = normalised(self.indexName)
        return Covering(name, self.indexedColumns, self.includedColumns, settings.buckets, settings.lineage)


@dataclass(frozen=True)
class ZOrderCoveringIndexConfig(CoveringIndexConfig):
    """A copy of some columns along a Z curve through the indexed ones."""

    def kind(self, settings: Settings) -> ZOrder:
        name = normalised(self.indexName)
        return ZOrder(name, self.indexedColumns, self.includedColumns, "z", settings.lineage)


IndexConfig = CoveringIndexConfig


def normalised(index_name: str) -> str:
    return "_".join(index_name.split())
