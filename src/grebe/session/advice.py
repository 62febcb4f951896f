"""What advice needs of a session: tables by name for recorded queries, and which tables these may name."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from grebe.advisor.recommend.replay import Named
from grebe.advisor.recommend.texts import without_paths
from grebe.clock import SYSTEM
from grebe.errors import GrebeError
from grebe.files import canonical_uri
from grebe.sources.globs import is_glob
from grebe.sources.roots import is_allowed
from grebe.spark.source import SparkSource, is_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SELF_DESCRIBING = ("parquet", "orc")


def may_name(table: str, own: Collection[str], met: Collection[str], roots: Sequence[str]) -> bool:
    """Tell whether a query that was recorded at the log of these `own` tables may name this one: itself, one that the session has
    met, or one where the log of the table may name files. Whoever may write to the log may have recorded anything, and advice opens
    the tables of a query."""
    if table in own or table in met:
        return True
    try:
        known = canonical_uri(table) == table and not is_glob(table)
    except GrebeError:
        return False
    return known and any(is_allowed(table, one, roots) for one in own)


@contextmanager
def named_tables(session: "SparkSession", opened: Callable[[str], SparkSource]) -> Iterator[Named]:
    """Tables as SQL names them: by format and path where that is all there is to say and the path can be quoted, else as a view
    that is gone afterwards."""
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
    if format in (*_SELF_DESCRIBING, "delta") and _can_be_quoted(source.uri):
        return f"{format}.`{source.uri}`"
    views.append(f"grebe_advice_{SYSTEM.new_id()}")
    frame = source.whole() if source.kind == "plain" else source.session.read.format(format).load(source.uri)
    frame.createOrReplaceTempView(views[-1])
    return views[-1]


def _can_be_quoted(uri: str) -> bool:
    """Tell whether a URI between backticks is to Spark's parser a name, and to Spark the path of one folder. A backtick would end
    the name, `${…}` is replaced before the text is parsed, and a glob means other folders."""
    return not ("`" in uri or "$" in uri or is_glob(uri))
