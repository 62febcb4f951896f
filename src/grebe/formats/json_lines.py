"""JSON lines: one object a line, records by byte offset and length.

Arrow's parser is stricter than Spark's: it refuses what Spark would turn into NULL or into text (a number where a
string is due, a fraction where an integer is due, a damaged line). So every value that is read here is the value that
Spark reads.
"""

import io
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from grebe.errors import Unsupported
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
from grebe.formats.text_records import Records, fetched, line_breaks, records, text_of
from grebe.formats.text_values import values_of
from grebe.formats.unite import require_no_default

_DEFAULT_ONLY: frozenset[str] = frozenset()
# Each line is put into an object of its own, so that a line with no value, half a value or two values is a syntax
# error.
_WRAP = "r"
_INTEGER_ZERO = r"-0\s*(?:[,}\]]|$)"
_MAY_BE_NEGATIVE_ZERO = r"-[0-9]+[.eE]"
_FRACTION = r"[0-9][.eE]"
_BELOW_SINGLE, _MIDDLE = np.uint64(2**29 - 1), np.uint64(2**28)
"""The bits of a double that a single has not, and how they are in the middle between two singles."""
_ROUNDS_TO_INFINITY = 2.0**128 - 2.0**103
_LEAST_NORMAL, _BITS_BELOW_LEAST = 2.0**-126, 150


class JsonLinesFormat:
    name = "json"
    suffixes = (".json", ".jsonl", ".ndjson")
    locator: LocatorShape = BYTE_SPAN
    options = OptionTable(
        defaults={
            "multiline": "false",
            "linesep": "",
            "encoding": "UTF-8",
            "mode": "PERMISSIVE",
            "dateformat": "",
            "timestampformat": "",
            "timestampntzformat": "",
            "locale": "en-US",
            "allowcomments": "false",
            "allowunquotedfieldnames": "false",
            "allowsinglequotes": "true",
            "allownumericleadingzeros": "false",
            "allownonnumericnumbers": "true",
            "allowbackslashescapinganycharacter": "false",
            "allowunquotedcontrolchars": "false",
            "columnnameofcorruptrecord": "_corrupt_record",
            "dropfieldifallnull": "false",
            "enabledatetimeparsingfallback": "",
        },
        aliases={"charset": "encoding"},
        readable={
            "encoding": frozenset(("utf-8", "UTF8", "utf8")),
            # Looser syntax does not matter: what needs it is refused.
            "mode": frozenset(("permissive",)),
            **dict.fromkeys(
                (
                    "multiline",
                    "dateformat",
                    "timestampformat",
                    "timestampntzformat",
                    "locale",
                    "allownonnumericnumbers",
                    "enabledatetimeparsingfallback",
                ),
                _DEFAULT_ONLY,
            ),
        },
    )
    local_times = True
    by_position = False

    def columns(self, file: DataFile, options: Mapping[str, str]) -> tuple[Column, ...]:
        raise Unsupported(
            "the schema of JSON lines is found by Spark; give `schema`, or create an index with Spark, which records it",
            detail="SCHEMA",
        )

    def read(self, file: DataFile, reading: Reading, names: Sequence[str] | None = None) -> Iterator[Located]:
        self._check(reading)
        for found in records(file, line_breaks(reading.option("linesep").encode())):
            kept = found.filter(pc.match_substring_regex(text_of(found, file), r"[^\t\n\r ]"))
            if len(kept):
                yield Located(self._table(kept, file, reading, names), kept.locators())

    def fetch(
        self,
        file: DataFile,
        reading: Reading,
        locators: pa.RecordBatch,
        names: Sequence[str] | None = None,
        memory: Memory = NO_MEMORY,
    ) -> pa.Table:
        self._check(reading)
        return pa.Table.from_batches([self._table(fetched(file, locators), file, reading, names)])

    def _check(self, reading: Reading) -> None:
        options = dict(reading.options)
        self.options.check_readable(self.name, options)
        if any(column.name == options["columnnameofcorruptrecord"] for column in reading.columns):
            raise Unsupported(
                "a column of corrupt records is filled by Spark only; leave it out", detail="READER_OPTION"
            )

    def _table(self, found: Records, file: DataFile, reading: Reading, names: Sequence[str] | None) -> pa.RecordBatch:
        wanted = wanted_columns(reading, names)
        for column in wanted:
            require_no_default(column, file.uri)
        schema = pa.schema([column.arrow for column in wanted])
        if not len(found):
            return pa.RecordBatch.from_pylist([], schema=schema)
        text = text_of(found, file)
        head, tail, between = (pa.scalar(part, pa.large_string()) for part in (f'{{"{_WRAP}":', "}\n", ""))
        lines = pc.binary_join_element_wise(head, text, tail, between)
        data = lines.buffers()[2]
        parsed = _parsed(data, pa.struct([field.with_type(_written(field.type)) for field in schema]), file)
        if parsed.num_rows != len(found):
            raise _not_plain(file)
        whole = parsed.column(_WRAP).combine_chunks()
        arrays = [
            _finished(array, field.type, reading.time_zone, f"column {field.name} of {file.uri}", text)
            for array, field in zip(whole.flatten(), schema, strict=True)
        ]
        if not wanted:
            return without_columns(len(found))
        return pa.record_batch(arrays, schema=schema)


def _parsed(data: pa.Buffer, kind: pa.StructType, file: DataFile) -> pa.Table:
    try:
        return pj.read_json(
            io.BytesIO(data),
            read_options=pj.ReadOptions(block_size=max(data.size, 1) + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema([(_WRAP, kind)]), unexpected_field_behavior="ignore"
            ),
        )
    except pa.ArrowInvalid as error:
        # Arrow's message quotes the data.
        raise _not_plain(file) from error


def _not_plain(file: DataFile) -> Unsupported:
    return Unsupported(
        f"{file.uri} has lines that are no plain JSON objects of the table's types; only Spark knows what it makes of them",
        detail="JSON_VALUE",
    )


def _written(kind: pa.DataType) -> pa.DataType:
    """The type in which Arrow's parser takes a value without changing it."""
    if pa.types.is_signed_integer(kind):
        return pa.int64()
    if pa.types.is_floating(kind):
        return pa.float64()
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([kind.field(i).with_type(_written(kind.field(i).type)) for i in range(kind.num_fields)])
    if pa.types.is_list(kind):
        return pa.list_(_written(kind.value_type))
    if pa.types.is_string(kind) or pa.types.is_boolean(kind):
        return kind
    raise Unsupported(
        f"JSON with values of type {kind} cannot be read without Spark; leave them out of `columns`", detail="TYPE"
    )


def _finished(array: pa.Array, kind: pa.DataType, zone: str | None, what: str, text: pa.Array) -> pa.Array:
    """Return values in the type of their column. `text` are the records that they come from."""
    if pa.types.is_struct(kind):
        parts = [
            _finished(part, kind.field(i).type, zone, f"{what}.{kind.field(i).name}", text)
            for i, part in enumerate(array.flatten())
        ]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null())
    if pa.types.is_list(kind):
        values = _finished(array.values, kind.value_type, zone, what, text)
        return pa.ListArray.from_arrays(array.offsets, values, type=kind, mask=array.is_null())
    if pa.types.is_string(array.type) and not pa.types.is_string(kind):
        return values_of(array, kind, {}, zone, what)
    if pa.types.is_floating(kind):
        return _floats(array, kind, what, text)
    try:
        return array.cast(kind)
    except pa.ArrowInvalid as error:
        raise Unsupported(
            f"{what} has numbers beyond its type; only Spark knows what it makes of them", detail="JSON_VALUE"
        ) from error


def _floats(array: pa.Array, kind: pa.DataType, what: str, text: pa.Array) -> pa.Array:
    """Return numbers as Spark has them, which Arrow gives as the nearest doubles.

    Spark rounds a number once, and takes `-0`, an integer, for 0. So doubles in the middle between two numbers of single precision
    are right only where the text is exactly that double, as integers are.
    """
    numbers = array.fill_null(1.0).to_numpy(zero_copy_only=False)
    if bool(np.any((numbers == 0) & np.signbit(numbers))) and pc.any(_matching(text, _INTEGER_ZERO)).as_py():
        if pc.any(_matching(text, _MAY_BE_NEGATIVE_ZERO)).as_py():
            raise _ambiguous(what)
        array = pc.if_else(pc.equal(array, 0.0), 0.0, array)
    if pa.types.is_float32(kind):
        sizes = np.abs(numbers[np.isfinite(numbers)])
        middle = sizes.view(np.uint64) & _BELOW_SINGLE == _MIDDLE
        middle |= (sizes < _LEAST_NORMAL) & (np.ldexp(sizes, _BITS_BELOW_LEAST) % 2 == 1)
        middle |= sizes >= _ROUNDS_TO_INFINITY
        if middle.any() and pc.any(_matching(text, _FRACTION)).as_py():
            raise _ambiguous(what)
    return array.cast(kind, safe=False)


def _matching(text: pa.Array, pattern: str) -> pa.Array:
    return pc.match_substring_regex(text, pattern)


def _ambiguous(what: str) -> Unsupported:
    return Unsupported(
        f"{what} has numbers that Spark may round in another way (`-0`, or more digits than its type has); read it through Spark",
        detail="JSON_VALUE",
    )


JSON_LINES = JsonLinesFormat()
