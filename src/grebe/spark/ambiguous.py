"""Files of text whose values depend on the columns that a query asks for.

Spark's readers of CSV and JSON skip what a query does not need, and on some records the skipping parser and the full one disagree:

- CSV: the parser skips a field otherwise than it reads one where quotes are escaped, stray or around a separator of several
  characters. With `sep="||"`, the second column of the line `"x||y"||z` is `z` in a query of both columns, and `||z` in a query
  of it alone.
- JSON: filters are checked while a record is parsed, so of a malformed record, or of one that names a key twice, it depends on the
  filter whether there is a row.

An index holds values of one such parse and must not answer for another. So a file with such a record is not covered by any index,
and queries read it directly.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from grebe.files import FileIds, FileList
from grebe.formats import Reading
from grebe.indexes.columns import spark_schema
from grebe.indexes.kind import FILE_COLUMN
from grebe.spark.readings import hidden_options, reader_options
from grebe.spark.source import LINE_COLUMN, SparkSource

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

_MALFORMED = "_grebe_malformed"
_OF_FILES = frozenset(("multiline", "linesep", "mode", "columnnameofcorruptrecord"))
_PRUNING, _PRUNING_OPTION = "spark.sql.csv.parser.columnPruning.enabled", "columnpruning"
_UTF_8 = frozenset(("utf-8", "utf8"))
ALL_LINES = ""
"""The pattern that is found in every line."""


def csv_pattern(options: Mapping[str, str]) -> str | None:
    """Return a regular expression that is found in every line which may parse differently without some columns; None: no line does.

    The rules were found by comparing both parses of random lines, and a test repeats that comparison.
    """
    if not _skips_columns(options):
        return None
    separator, quote, escape = options["sep"], options["quote"].strip("\0"), options["escape"].strip("\0")
    trims = "true" in (options["ignoreleadingwhitespace"], options["ignoretrailingwhitespace"])
    if len(separator) > 1 and trims:
        return ALL_LINES
    if not quote:
        return None
    usual = (
        len(separator) == 1
        and options["unescapedquotehandling"].upper() == "STOP_AT_DELIMITER"
        and not options["chartoescapequoteescaping"]
        and not (trims and options["emptyvalue"])
    )
    if not usual:
        return re.escape(quote)
    if quote == escape:
        # The skipping parser takes the quote that opens a field for an escape of the next one. After an empty field, or one that
        # begins with quotes, it goes on to the next quote, and ends the field there if a separator follows.
        doubled = rf"(^|{re.escape(separator)})\s*(?:{re.escape(quote * 2)})+"
        if options["multiline"] == "true":
            return doubled
        return rf"{doubled}[^{re.escape(quote)}]*{re.escape(quote)}\s*({re.escape(separator)}|$)"
    if not escape:
        return None
    # An escaped escape before a closing quote: the skipping parser misses that quote, and goes on to the next one.
    missed = rf"(?<!{re.escape(escape)})(?:{re.escape(escape * 2)})+{re.escape(quote)}"
    return missed if options["multiline"] == "true" else rf"{missed}.*{re.escape(quote)}"


def _skips_columns(options: Mapping[str, str]) -> bool:
    """Return whether Spark's parser of CSV skips the columns that a query does not ask for: by default not in records that may have
    several lines."""
    return _PRUNING_OPTION in options or (options["multiline"] != "true" and options.get(_PRUNING) != "false")


def ambiguous_files(source: SparkSource, files: FileList, ids: npt.NDArray[np.uint32]) -> FileIds:
    """Return the ids of those files that hold a record whose values depend on the columns of a query."""
    check = {"csv": _csv_check, "json": _json_check}.get(source.reading.format)
    ambiguous = None if check is None else check(source.reading)
    if ambiguous is None or not len(files):
        return FileIds.of([])
    options = dict(source.reading.options)
    whole = source.reading.format == "json" and options["multiline"] == "true"
    lines = source.lines(files, ids, options["linesep"], whole)
    found = lines.where(ambiguous).select(FILE_COLUMN).distinct().collect()
    return FileIds.of([row[0] for row in found])


def _csv_check(reading: Reading) -> "SparkColumn | None":
    from pyspark.sql import functions

    options = dict(reading.options)
    pattern = csv_pattern(options)
    if pattern is None:
        return None
    line = functions.col(LINE_COLUMN)
    if options["encoding"].lower() not in _UTF_8:
        # Characters of ASCII are their bytes in all encodings of Java but for zeros around them.
        line = functions.translate(line, "\0", "")
        pattern = pattern if pattern.isascii() and "\0" not in pattern else ALL_LINES
    return line.rlike(pattern)


def _json_check(reading: Reading) -> "SparkColumn":
    from pyspark.sql import functions
    from pyspark.sql.types import StringType, StructType

    if hidden_options(reading):  # one of them may change which records are malformed
        return functions.lit(True)
    options = reader_options(reading)
    if options.pop("encoding", "UTF-8").lower() not in _UTF_8:
        return functions.lit(True)
    fields = ((column.name, column.type) for column in reading.file_columns)
    schema = StructType.fromJson(spark_schema(fields)).add(_MALFORMED, StringType())
    parsing = {name: value for name, value in options.items() if name not in _OF_FILES}
    parsing |= {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _MALFORMED}

    def is_ambiguous(record: "SparkColumn") -> "SparkColumn":
        keys = functions.json_object_keys(record)
        malformed = functions.from_json(record, schema, parsing)[_MALFORMED].isNotNull()
        return malformed | keys.isNull() | (functions.size(functions.array_distinct(keys)) < functions.size(keys))

    text = functions.trim(LINE_COLUMN)
    several = functions.from_json(text, "array<string>")
    records = functions.when(text.startswith("["), several).otherwise(functions.array(text))
    return (text != "") & (records.isNull() | functions.exists(records, is_ambiguous))
