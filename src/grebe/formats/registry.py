"""The record formats that are there: ours, and those that installed packages announce in the entry point group
`grebe.formats`.

An entry point names an object with the attributes of `protocol.Format`; its name is the name of the format. Other
packages' formats are loaded when one is asked for by name, or when a file has a suffix that none of ours claims.
"""

from functools import cache
from importlib.metadata import entry_points

from grebe.errors import InvalidConfig, Unsupported
from grebe.formats.avro import AVRO
from grebe.formats.csv import CSV
from grebe.formats.json_lines import JSON_LINES
from grebe.formats.orc import ORC
from grebe.formats.parquet import PARQUET
from grebe.formats.protocol import Format
from grebe.formats.text import TEXT
from grebe.formats.text_records import COMPRESSION_SUFFIXES

GROUP = "grebe.formats"
OURS: tuple[Format, ...] = (PARQUET, ORC, CSV, JSON_LINES, AVRO, TEXT)
_MEMBERS = ("suffixes", "locator", "options", "local_times", "by_position", "columns", "read", "fetch")


def format_named(name: str) -> Format:
    low = name.lower()
    for ours in OURS:
        if ours.name == low:
            return ours
    for point in entry_points(group=GROUP):
        if point.name.lower() == low:
            return _loaded(point.name, point.value)
    known = sorted({ours.name for ours in OURS} | {point.name for point in entry_points(group=GROUP)})
    raise Unsupported(f"there is no format {name!r}; known are {', '.join(known)}", detail="FORMAT")


def format_of_file(name: str) -> Format | None:
    """The format that the suffix of a file's name tells, behind that of a compression if need be; None if none
    does."""
    return _format_of_suffix(data_suffix(name))


def data_suffix(name: str) -> str:
    """The last suffix of a file's name that is not one of a compression, in lower case with its dot; empty if it has
    none."""
    stem = name.rpartition("/")[2].lower()
    for compression in COMPRESSION_SUFFIXES:
        stem = stem.removesuffix(compression)
    _, dot, suffix = stem.rpartition(".")
    return dot + suffix if dot else ""


@cache
def _format_of_suffix(suffix: str) -> Format | None:
    if not suffix:
        return None
    for ours in OURS:
        if suffix in ours.suffixes:
            return ours
    for point in entry_points(group=GROUP):
        theirs = _loaded(point.name, point.value)
        if suffix in theirs.suffixes:
            return theirs
    return None


def _loaded(name: str, value: str) -> Format:
    (point,) = (point for point in entry_points(group=GROUP) if (point.name, point.value) == (name, value))
    try:
        found: Format = point.load()
    except (ImportError, AttributeError) as error:
        raise InvalidConfig(
            f"the format {name!r} of another package cannot be loaded from {value}: {error}", detail="PLUG_IN"
        ) from error
    lacking = [member for member in _MEMBERS if not hasattr(found, member)]
    if lacking:
        raise InvalidConfig(f"the format {name!r} at {value} lacks {', '.join(lacking)}", detail="PLUG_IN")
    return found
