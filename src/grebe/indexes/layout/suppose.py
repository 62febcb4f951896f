"""What a layout would be like, by a sample of the table's rows: the tree is learned from them."""

import numpy as np
import pyarrow as pa

from grebe.indexes.content.parts import parts_for
from grebe.indexes.content.shape import Shape
from grebe.indexes.layout.build import learned
from grebe.indexes.layout.tree import route
from grebe.indexes.supposed import Sample, Supposed, copied_bytes
from grebe.log.entry import IndexSpec


def suppose(spec: IndexSpec, shape: Shape, sample: Sample) -> Supposed:
    names = [column.content for column in shape.on]
    rows = pa.table([sample.values(column) for column in shape.on], names)
    share = min(1.0, rows.num_rows / max(1, sample.facts.rows))
    tree, layout = learned(spec, shape, rows, sample.facts, share)
    order = np.argsort(route(tree, rows), kind="stable").astype(np.int64)
    size = copied_bytes(sample, shape.columns, order)
    return Supposed({"layout": layout, "tree": tree.text()}, size, sample.facts.rows, parts_for(size), order)
