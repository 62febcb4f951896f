"""Which table a user means: plain files, or one of a lake format; by a path, a name of the catalog, or a DataFrame."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from grebe.errors import GrebeError
from grebe.files import canonical_uri
from grebe.sources.marks import lake_in
from grebe.sources.registry import LAKES
from grebe.spark.lake_source import lake_source
from grebe.spark.shim import load
from grebe.spark.source import SparkSource, frame_of, is_path, plain_source
from grebe.spark.stores import table_store_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_GLOB = "*?[{"


def spark_source(
    session: "SparkSession",
    source: "str | DataFrame",
    format: str | None = None,
    options: Mapping[str, str] | None = None,
    allowed: Sequence[str] = (),
) -> SparkSource:
    """`allowed`: folders where the log of a lake format may name files beside the table's own. Raises `TableNotFound`, and
    `InvalidIndex` for what is not one table."""
    shim = load(session)
    if isinstance(source, str) and is_path(source):
        lake = format.lower() if format else _lake_at(session, source)
        if lake is not None and lake in LAKES:
            return lake_source(session, shim, lake, canonical_uri(source), allowed=allowed)
    frame = frame_of(session, shim, source, format, dict(options or {}))
    relation = json.loads(shim.bridge.relation(frame._jdf))
    if "lake" in relation:
        return lake_source(session, shim, relation["lake"], relation["at"], relation["table"], frame, allowed)
    return plain_source(session, shim, source, frame, relation, allowed)


def _lake_at(session: "SparkSession", path: str) -> str | None:
    """None for plain files, and for what cannot be looked at: whoever reads it will say so."""
    if any(sign in path for sign in _GLOB):
        return None
    try:
        return lake_in(table_store_for(session, canonical_uri(path)))
    except GrebeError:
        return None
