"""Geometries, by shapely: an extra that only questions about them need."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from grebe.errors import Unsupported


def shapely() -> Any:
    """The package; raises `Unsupported` where it lacks."""
    try:
        import shapely  # type: ignore[import-untyped]  # it has no types
    except ImportError as lacking:
        raise Unsupported(
            "geometries need the package shapely; install it here and where Spark's workers run: pip install 'grebe[spatial]'",
            detail="NO_SHAPELY",
        ) from lacking
    return shapely


def from_wkb(values: Sequence[bytes | None]) -> Any:
    """An array of geometries; None for NULL, and for bytes that are none."""
    return shapely().from_wkb(np.array(values, dtype=object), on_invalid="ignore")
