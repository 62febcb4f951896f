"""Plain text: every line a record of one column, `value`."""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from grebe.formats.options import OptionTable
from grebe.formats.protocol import BYTE_SPAN, NO_MEMORY, DataFile, Located, LocatorShape, Memory, wanted_columns
from grebe.formats.reading import Column, Reading
from grebe.formats.text_records import Records, fetched, line_breaks, records, text_of
from grebe.formats.unite import unite


class TextFormat:
    name = "text"
    suffixes = (".txt", ".text", ".log")
    locator: LocatorShape = BYTE_SPAN
    options = OptionTable(
        defaults={"wholetext": "false", "linesep": "", "encoding": "UTF-8"},
        aliases={"charset": "encoding"},
        readable={"wholetext": frozenset(("false",)), "encoding": frozenset(("utf-8", "UTF8", "utf8"))},
    )
    local_times = False
    by_position = False

    def columns(self, file: DataFile, options: Mapping[str, str]) -> tuple[Column, ...]:
        return (Column("value", "string"),)

    def read(self, file: DataFile, reading: Reading, names: Sequence[str] | None = None) -> Iterator[Located]:
        self.options.check_readable(self.name, dict(reading.options))
        for found in records(file, line_breaks(reading.option("linesep").encode())):
            yield Located(self._table(found, file, reading, names), found.locators())

    def fetch(
        self,
        file: DataFile,
        reading: Reading,
        locators: pa.RecordBatch,
        names: Sequence[str] | None = None,
        memory: Memory = NO_MEMORY,
    ) -> pa.Table:
        self.options.check_readable(self.name, dict(reading.options))
        return pa.Table.from_batches([self._table(fetched(file, locators), file, reading, names)])

    def _table(self, found: Records, file: DataFile, reading: Reading, names: Sequence[str] | None) -> pa.RecordBatch:
        lines = pa.record_batch([text_of(found, file)], names=["value"])
        return unite(lines, wanted_columns(reading, names), file.uri)


TEXT = TextFormat()
