"""CSV: records by byte offset and length, fields as Spark's parser gives them (see `csv_fields` for what is
refused)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from grebe.errors import Unsupported
from grebe.formats.csv_encoding import READABLE, UTF_8, encoded, in_utf8
from grebe.formats.csv_fields import MOST_COLUMNS, Dialect, Field, fields_of, multi_line_breaks
from grebe.formats.options import OptionTable
from grebe.formats.protocol import (
    BYTE_SPAN,
    NO_MEMORY,
    DataFile,
    Located,
    LocatorShape,
    Memory,
    wanted_columns,
    without_columns,
)
from grebe.formats.reading import Column, Reading
from grebe.formats.text_records import Records, fetched, line_breaks, records
from grebe.formats.text_values import values_of
from grebe.formats.unite import require_no_default

_DEFAULT_ONLY: frozenset[str] = frozenset()


class CsvFormat:
    name = "csv"
    suffixes = (".csv", ".tsv")
    locator: LocatorShape = BYTE_SPAN
    options = OptionTable(
        defaults={
            "sep": ",",
            "quote": '"',
            "escape": "\\",
            "header": "false",
            "multiline": "false",
            "linesep": "",
            "nullvalue": "",
            "emptyvalue": "",
            "nanvalue": "NaN",
            "positiveinf": "Inf",
            "negativeinf": "-Inf",
            "encoding": "UTF-8",
            "mode": "PERMISSIVE",
            "comment": "",
            "ignoreleadingwhitespace": "false",
            "ignoretrailingwhitespace": "false",
            "dateformat": "",
            "timestampformat": "",
            "timestampntzformat": "",
            "locale": "en-US",
            "unescapedquotehandling": "STOP_AT_DELIMITER",
            "chartoescapequoteescaping": "",
            "columnnameofcorruptrecord": "_corrupt_record",
            "enforceschema": "true",
            "enabledatetimeparsingfallback": "",
            "maxcolumns": str(MOST_COLUMNS),
            "maxcharspercolumn": "-1",
        },
        aliases={"delimiter": "sep", "charset": "encoding"},
        readable={
            "encoding": READABLE,
            "mode": frozenset(("permissive",)),
            **dict.fromkeys(
                (
                    "comment",
                    "ignoreleadingwhitespace",
                    "ignoretrailingwhitespace",
                    "dateformat",
                    "timestampformat",
                    "timestampntzformat",
                    "locale",
                    "unescapedquotehandling",
                    "chartoescapequoteescaping",
                    "enforceschema",
                    "enabledatetimeparsingfallback",
                    "maxcolumns",
                    "maxcharspercolumn",
                ),
                _DEFAULT_ONLY,
            ),
        },
    )
    local_times = True
    by_position = True

    def columns(self, file: DataFile, options: Mapping[str, str]) -> tuple[Column, ...]:
        """All text, named by the header or by number; other types come from a schema, given or recorded."""
        if options.get("inferschema", "false").lower() == "true":
            raise Unsupported(
                "inferSchema needs Spark; give a schema, or create an index with Spark, which records it",
                detail="SCHEMA",
            )
        first = next((found for found in self._records(file, options) if len(found)), None)
        if first is None:
            return ()
        line = in_utf8(first[:1], options["encoding"], file)
        dialect = _dialect(options)
        fields = fields_of(line, dialect, None, file.uri)
        names = [_cleaned(field, options, file)[0].as_py() for field in fields]
        header = options["header"] == "true"
        return tuple(Column(name, "string") for name in _safe_names(names if header else [None] * len(names)))

    def read(self, file: DataFile, reading: Reading, names: Sequence[str] | None = None) -> Iterator[Located]:
        options = self._checked(reading)
        header = options["header"] == "true"
        for found in self._records(file, options):
            if header and len(found):
                # Stray quotes in the header would shift all that follows.
                fields_of(in_utf8(found[:1], options["encoding"], file), _dialect(options), [], file.uri)
                found, header = found[1:], False
            if len(found):
                yield Located(self._table(found, file, reading, names), found.locators())

    def fetch(
        self,
        file: DataFile,
        reading: Reading,
        locators: pa.RecordBatch,
        names: Sequence[str] | None = None,
        memory: Memory = NO_MEMORY,
    ) -> pa.Table:
        self._checked(reading)
        return pa.Table.from_batches([self._table(fetched(file, locators), file, reading, names)])

    def _checked(self, reading: Reading) -> dict[str, str]:
        options = dict(reading.options)
        self.options.check_readable(self.name, options)
        if any(column.name == options["columnnameofcorruptrecord"] for column in reading.columns):
            raise Unsupported(
                "a column of corrupt records is filled by Spark only; leave it out", detail="READER_OPTION"
            )
        return options

    def _records(self, file: DataFile, options: Mapping[str, str]) -> Iterator[Records]:
        """The records that Spark sees: without `multiLine` it skips blank lines, with it only empty ones."""
        encoding = options["encoding"]
        separator = encoded(options["linesep"], encoding)
        if options["multiline"] == "true":
            if separator or encoding not in UTF_8:
                other = "lineSep" if separator else f"encoding={encoding!r}"
                raise Unsupported(
                    f"multiLine together with {other} cannot be read without Spark", detail="READER_OPTION"
                )
            for found in records(file, multi_line_breaks(_dialect(options), file.uri)):
                yield found.filter(pc.greater(pc.binary_length(found.values), 0))
        else:
            for found in records(file, line_breaks(separator)):
                yield found.filter(pc.match_substring_regex(found.values, r"[^\x00-\x20]"))

    def _table(self, found: Records, file: DataFile, reading: Reading, names: Sequence[str] | None) -> pa.RecordBatch:
        options = dict(reading.options)
        text = in_utf8(found, options["encoding"], file)
        wanted = wanted_columns(reading, names)
        for column in wanted:
            require_no_default(column, file.uri)
        order = {column.name: number for number, column in enumerate(reading.file_columns)}
        fields = fields_of(text, _dialect(options), [order[column.name] for column in wanted], file.uri)
        arrays = [
            values_of(
                _cleaned(field, options, file),
                column.arrow.type,
                options,
                reading.time_zone,
                f"column {column.name} of {file.uri}",
            )
            for column, field in zip(wanted, fields, strict=True)
        ]
        if not wanted:
            return without_columns(len(found))
        return pa.record_batch(arrays, schema=pa.schema([column.arrow for column in wanted]))


def _dialect(options: Mapping[str, str]) -> Dialect:
    return Dialect.of(options["sep"], options["quote"], options["escape"])


def _cleaned(field: Field, options: Mapping[str, str], file: DataFile) -> pa.LargeStringArray:
    """With NULL where Spark has it: nothing at all between separators, and the text of `nullValue`."""
    text = field.text.cast(pa.large_string())
    empty = pc.equal(text, "")
    text = pc.if_else(empty, pc.if_else(field.quoted, pa.scalar(options["emptyvalue"], pa.large_string()), None), text)
    return pc.if_else(pc.equal(text, options["nullvalue"]), None, text)


def _safe_names(header: Sequence[str | None]) -> list[str]:
    """Spark's names: a number for what has no name, and one behind every name that is there twice."""
    low = Counter(name.lower() for name in header if name)
    return [
        f"_c{number}" if not name else f"{name}{number}" if low[name.lower()] > 1 else name
        for number, name in enumerate(header)
    ]


CSV = CsvFormat()
