"""What to index, as Hyperspace's programs say it."""
# ruff: noqa: N815 - the names are Hyperspace's

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from grebe.compat.hyperspace.settings import Settings
from grebe.indexes.covering.spec import Covering

_logger = logging.getLogger("grebe.compat")


@dataclass(frozen=True)
class CoveringIndexConfig:
    """A copy of some columns, laid out by the indexed ones. White space in the name becomes an underscore, as in Hyperspace."""

    indexName: str
    indexedColumns: Sequence[str]
    includedColumns: Sequence[str] = ()

    def kind(self, settings: Settings) -> Covering:
        """The index of ours that does the same."""
        return self._covering(settings, settings.buckets)

    def _covering(self, settings: Settings, buckets: int | None) -> Covering:
        name = normalised(self.indexName)
        return Covering(name, self.indexedColumns, self.includedColumns, buckets, settings.lineage)


@dataclass(frozen=True)
class ZOrderCoveringIndexConfig(CoveringIndexConfig):
    """As a covering index that is sorted as a whole: by one column that is the z-order; by several the first counts most."""

    def kind(self, settings: Settings) -> Covering:
        if len(self.indexedColumns) > 1:
            _logger.warning(
                "event=sorted_instead_of_z_order index=%s columns=%s", self.indexName, ",".join(self.indexedColumns)
            )
        return self._covering(settings, buckets=0)


IndexConfig = CoveringIndexConfig


def normalised(index_name: str) -> str:
    return "_".join(index_name.split())
