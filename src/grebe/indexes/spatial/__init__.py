"""Places on a plane: a packed R-tree over points, boxes or the envelopes of geometries, whose entries say where each row lies."""
