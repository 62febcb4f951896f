"""Which content files of a copy can hold a row that a predicate lets through.

Two things are known of a file: its bucket, which `=`, IN and IS NULL on the only bucket column narrow down, and the bounds of the
columns indexed on. Each gives a verdict a file for a simple predicate; `judge` carries them through AND, OR and NOT. Nothing is
read, and the work is a few passes over all files at once.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from grebe.indexes.kind import Copy
from grebe.planner.content import Content, content_of, path_of
from grebe.planner.spark_hash import bucket_of
from grebe.predicate.bounds import MANY_VALUES, Bounds, Numbers, by_bounds, named
from grebe.predicate.tree import Column, Compare, In, IsNull, Literal, Path, Predicate
from grebe.predicate.types import VOID
from grebe.predicate.verdicts import Verdicts, both, judge, must_read


def files_to_read(copy: Copy, predicate: Predicate, mentions: frozenset[Path]) -> Numbers:
    """Positions in `copy.content`, ascending; `content.everything` itself if none is left out. The predicate is bound and
    normalised, and `mentions` are the columns that it speaks of."""
    content, bucket_column = content_of(copy), _bucket_column(copy)
    told = [content.columns[path].bounds for path in content.columns.keys() & mentions]
    if mentions and not told and bucket_column not in mentions:
        return content.everything
    leaf = partial(_verdicts, content, told, bucket_column, copy.layout.buckets)
    kept = np.flatnonzero(must_read(judge(predicate, content.files, leaf)))
    return kept if len(kept) < content.files else content.everything


def _bucket_column(copy: Copy) -> Path | None:
    """The column that alone decides the bucket."""
    by = copy.layout.bucket_by
    return path_of(copy, by[0]) if copy.layout.buckets > 0 and len(by) == 1 else None


def _verdicts(
    content: Content, told: Sequence[Bounds], bucket_column: Path | None, buckets: int, predicate: Predicate
) -> Verdicts | None:
    """What is known of a simple predicate; None if nothing is."""
    known = None
    if bucket_column is not None:
        known = _by_bucket(content, bucket_column, buckets, predicate)
    for bounds in told:
        judged = by_bounds(bounds, predicate)
        known = judged if known is None else known if judged is None else both(known, judged)
    return known


def _by_bucket(content: Content, column: Path, buckets: int, predicate: Predicate) -> Verdicts | None:
    match predicate:
        case Compare("=" | "<=>", Column(path, kind), Literal() as value) if path == column and kind == value.type:
            values: tuple[Literal, ...] = (value,)
        case In(Column(path, kind), items) if path == column and len(items) <= MANY_VALUES:
            values = tuple(item for item in items if isinstance(item, Literal) and item.type == kind)
            if len(values) < len(items):
                return None
        case IsNull(Column(path)) if path == column:
            values = (Literal(None, VOID),)
        case _:
            return None
    hashed = [bucket_of(value, buckets) for value in values]
    wanted = [one for one in hashed if one is not None]
    if len(wanted) < len(hashed):
        return None
    elsewhere = ~np.isin(content.buckets, [*wanted, -1])
    return named(elsewhere, np.zeros_like(elsewhere))
