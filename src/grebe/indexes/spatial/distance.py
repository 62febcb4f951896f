"""Planar distances between a point and boxes (one a row: xmin, ymin, xmax, ymax)."""

import numpy as np
import numpy.typing as npt

Boxes = npt.NDArray[np.float64]
Distances = npt.NDArray[np.float64]


def near_to(boxes: Boxes, x: float, y: float) -> Distances:
    """To the nearest place of each box; NaN where a corner is."""
    across = np.maximum(np.maximum(boxes[:, 0] - x, x - boxes[:, 2]), 0.0)
    up = np.maximum(np.maximum(boxes[:, 1] - y, y - boxes[:, 3]), 0.0)
    return np.asarray(np.hypot(across, up))


def far_from(boxes: Boxes, x: float, y: float) -> Distances:
    """To the farthest place of each box."""
    across = np.maximum(np.abs(boxes[:, 0] - x), np.abs(boxes[:, 2] - x))
    up = np.maximum(np.abs(boxes[:, 1] - y), np.abs(boxes[:, 3] - y))
    return np.asarray(np.hypot(across, up))
