"""Hyperspace's Python names: a program changes `from hyperspace import *` to `from grebe.compat.hyperspace import *`."""

from grebe.compat.hyperspace.hyperspace import Hyperspace
from grebe.compat.hyperspace.indexconfig import CoveringIndexConfig, IndexConfig, ZOrderCoveringIndexConfig

__all__ = ["CoveringIndexConfig", "Hyperspace", "IndexConfig", "ZOrderCoveringIndexConfig"]
