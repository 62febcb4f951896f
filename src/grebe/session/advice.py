"""What advice needs of a session: tables by name for recorded queries, and the queries that were recorded."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from grebe.advisor.recommend.replay import Named
from grebe.advisor.recommend.texts import without_paths
from grebe.clock import SYSTEM
from grebe.errors import GrebeError
from grebe.spark.source import SparkSource, is_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SELF_DESCRIBING = ("parquet", "orc")


@contextmanager
def named_tables(session: "SparkSession", opened: Callable[[str], SparkSource]) -> Iterator[Named]:
    """Tables as SQL names them: by format and path where that is all there is to say, else as a view that is gone afterwards."""
    names: dict[str, str | None] = {}
    views: list[str] = []

    def named(uri: str) -> str | None:
        if uri not in names:
            try:
                source = opened(uri)
            except GrebeError:
                names[uri] = None
            else:
                names[uri] = _name(source, views)
        return names[uri]

    try:
        yield named
    finally:
        for view in views:
            session.catalog.dropTempView(view)


@contextmanager
def paths_as_views(session: "SparkSession") -> Iterator[Callable[[str], str]]:
    """Texts with a view in place of each ``format.`path` ``, whose files are listed once; the views are gone afterwards."""
    views: dict[tuple[str, str], str | None] = {}

    def named(format: str, path: str) -> str | None:
        if (format, path) not in views:
            views[format, path] = _view_of(session, format, path) if is_path(path) else None
        return views[format, path]

    try:
        yield lambda text: without_paths(text, named)
    finally:
        for view in filter(None, views.values()):
            session.catalog.dropTempView(view)


def _view_of(session: "SparkSession", format: str, path: str) -> str | None:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        frame = session.read.format(format).load(path)
    except (PySparkException, Py4JJavaError):
        return None  # Spark says so for the query itself
    name = f"grebe_advice_{SYSTEM.new_id()}"
    frame.createOrReplaceTempView(name)
    return name


def _name(source: SparkSource, views: list[str]) -> str:
    format = source.reading.format if source.kind == "plain" else source.kind
    if format in (*_SELF_DESCRIBING, "delta"):
        return f"{format}.`{source.uri}`"
    views.append(f"grebe_advice_{SYSTEM.new_id()}")
    frame = source.whole() if source.kind == "plain" else source.session.read.format(format).load(source.uri)
    frame.createOrReplaceTempView(views[-1])
    return views[-1]
