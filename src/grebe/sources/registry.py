"""The sources that are there: plain files, the lake formats, and those that installed packages announce in the entry point group
`grebe.sources`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from importlib.metadata import EntryPoint, entry_points
from os import PathLike

import pyarrow as pa

from grebe.errors import InvalidConfig, TableNotFound, Unsupported
from grebe.files import canonical_uri, path_given
from grebe.formats import Column
from grebe.formats.reading import columns_of
from grebe.formats.spark_types import spark_type, type_text
from grebe.sources import delta, hudi, iceberg
from grebe.sources.lake import time_given, version_given
from grebe.sources.marks import lake_in
from grebe.sources.plain import LakeTableFound, open_plain
from grebe.sources.protocol import Request, Source, SourceKind, Version
from grebe.sources.roots import allowed_roots
from grebe.store.opening import open_table_store
from grebe.store.protocol import Store

GROUP = "grebe.sources"
LAKES: Mapping[str, SourceKind] = {"delta": delta.KIND, "iceberg": iceberg.KIND, "hudi": hudi.KIND}
"""By what users give as `format`."""
_MEMBERS = ("recognises", "open")


def open_source(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    format: str | None = None,
    options: Mapping[str, object] | None = None,
    storage_options: Mapping[str, str] | None = None,
    schema: pa.Schema | Mapping[str, object] | Sequence[Column] | None = None,
    time_zone: str = "UTC",
    version: Version | None = None,
    timestamp: str | date | None = None,
    open_store: Callable[[str, Mapping[str, str] | None], Store] = open_table_store,
    allowed: Iterable[str] = (),
    guard_decoders: bool = True,
) -> Source:
    """The table at a path, or at several. `format` is a record format or the name of a source; `schema` is one of Arrow, one in
    Spark's JSON, or columns as recorded; `allowed` are folders where the log of a lake format may name files beside the table's
    own; `guard_decoders` is the setting. Raises `TableNotFound` where nothing is that could be a table."""
    written = (paths,) if isinstance(paths, (str, PathLike)) else tuple(paths)
    if not written:
        raise TableNotFound("no path was given", detail="EMPTY_PATH")
    if format is not None and not isinstance(format, str):
        raise Unsupported(f"format={format!r} is no name of a format; give text such as 'parquet'", detail="FORMAT")
    version, moment = version_given(version), time_given(timestamp)
    request = Request(
        tuple(path_given(path) for path in written),
        format,
        options or {},
        storage_options or {},
        _columns(schema),
        time_zone,
        version,
        moment,
        open_store,
        allowed_roots(allowed),
        guard_decoders,
    )
    for point in entry_points(group=GROUP):
        if format is None or point.name.lower() == format.lower():
            kind = _loaded(point)
            if format is not None or kind.recognises(request):
                return kind.open(request).at(version, moment)
    lake = _lake_on_disk(request) if format is None else format.lower()
    if lake in LAKES:
        return LAKES[lake].open(request)
    try:
        return open_plain(request).at(version, moment)
    except LakeTableFound as found:
        return LAKES[found.format].open(request)


def _lake_on_disk(request: Request) -> str:
    """The lake format of a local folder, which costs next to nothing to see; empty if it has none. Elsewhere the listing tells."""
    uri = canonical_uri(request.paths[0])
    if len(request.paths) > 1 or not uri.startswith("file://"):
        return ""
    return lake_in(request.open_store(uri, request.storage_options)) or ""


def _columns(schema: pa.Schema | Mapping[str, object] | Sequence[Column] | None) -> tuple[Column, ...] | None:
    if schema is None:
        return None
    if isinstance(schema, pa.Schema):
        return tuple(Column(field.name, type_text(spark_type(field.type))) for field in schema)
    return columns_of(dict(schema)) if isinstance(schema, Mapping) else tuple(schema)


def _loaded(point: EntryPoint) -> SourceKind:
    try:
        kind: SourceKind = point.load()
    except (ImportError, AttributeError) as error:
        raise InvalidConfig(
            f"the source {point.name!r} cannot be loaded from {point.value}: {error}", detail="PLUG_IN"
        ) from error
    lacking = [member for member in _MEMBERS if not hasattr(kind, member)]
    if lacking:
        raise InvalidConfig(f"the source {point.name!r} at {point.value} lacks {', '.join(lacking)}", detail="PLUG_IN")
    return kind
