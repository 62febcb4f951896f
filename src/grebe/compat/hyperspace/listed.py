"""Indexes as rows of a DataFrame under Hyperspace's column names: those of 0.4, and the map that 0.5 keeps some of them in."""

import json
from pathlib import PurePosixPath
from typing import Any

from grebe.formats import Reading
from grebe.indexes.columns import spark_schema
from grebe.log.commit import Log
from grebe.log.describe import IndexInfo

SUMMARY = (
    "name string, indexedColumns array<string>, includedColumns array<string>, numBuckets int, schema string, "
    "indexLocation string, state string, additionalStats map<string, string>"
)
_DETAIL = (
    f"{SUMMARY}, kind string, numIndexFiles int, sizeIndexFiles bigint, numSourceFiles int, numAppendedFiles int, "
    "numDeletedFiles int, indexContentPaths array<string>"
)
_Z_ORDER = "ZOrderCoveringIndex"
_KINDS = {"covering": "CoveringIndex", "skipping": "DataSkippingIndex", "zorder": _Z_ORDER}


def summary_of(info: IndexInfo, log: Log) -> tuple[Any, ...]:
    """A row of `SUMMARY`."""
    known = info.properties
    included = [str(column) for column in known.get("include", ())]
    buckets = _buckets(info)
    schema = json.dumps(_schema(info), separators=(",", ":"))
    extra = {"includedColumns": ", ".join(included), "schema": schema, "hasLineage": str(known.get("lineage")).lower()}
    if buckets is not None:
        extra["numBuckets"] = str(buckets)
    where = f"{log.store.uri}/data/{info.name}"
    return info.name, list(info.columns), included, buckets, schema, where, info.state, extra


def detail_of(info: IndexInfo, log: Log) -> tuple[tuple[Any, ...], str]:
    """A row and its columns. `info` is of the table as it is now: files that the index does not cover are the appended ones."""
    index = log.state.indexes.get(info.name)
    content = index.content if index is not None else ()
    source = len(index.covered) if index is not None else 0
    deleted = source - info.files_covered
    folders = sorted({f"{log.store.uri}/{PurePosixPath(file.path).parent}" for file in content})
    more = (_kind(info), len(content), info.bytes, source, info.files_stale - deleted, deleted, folders)
    return (*summary_of(info, log), *more), _DETAIL


def _kind(info: IndexInfo) -> str:
    if info.kind == "covering" and info.properties.get("buckets") == 0:  # as release 0.1 made them
        return _Z_ORDER
    return _KINDS.get(info.kind, info.kind)


def _buckets(info: IndexInfo) -> int | None:
    """How many there are; before that is decided, how many were asked for. None: it is sorted as a whole, or of another kind."""
    layout = info.properties.get("layout", {})
    return layout.get("buckets", info.properties.get("buckets")) or None


def _schema(info: IndexInfo) -> dict[str, Any]:
    """Of the columns that it was made from, as Spark writes it."""
    reading = info.properties.get("reading")
    columns = Reading.from_dict(reading).columns if reading else ()
    return spark_schema((column.name, column.type) for column in columns)
