"""The format itself, as `grebe.formats.Format` asks for it."""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from grebe.errors import Unsupported
from grebe.formats import NO_MEMORY, Column, DataFile, Located, LocatorShape, Memory, Reading
from grebe.formats.options import OptionTable

from .layout import Cursor, Head, Pair, head_of, pairs


@dataclass(frozen=True)
class Writable:
    """A class of Hadoop: the type of its values in Spark, and how to get one from its bytes."""

    type: str
    value: Callable[[bytes], object]


def _number(layout: str) -> Callable[[bytes], object]:
    shape = struct.Struct(layout)
    return lambda data: shape.unpack(data)[0]


_WRITABLES = {
    "org.apache.hadoop.io.Text": Writable("string", lambda data: Cursor(data).text()),
    "org.apache.hadoop.io.IntWritable": Writable("integer", _number(">i")),
    "org.apache.hadoop.io.LongWritable": Writable("long", _number(">q")),
    "org.apache.hadoop.io.DoubleWritable": Writable("double", _number(">d")),
    "org.apache.hadoop.io.BooleanWritable": Writable("boolean", _number("?")),
    "org.apache.hadoop.io.BytesWritable": Writable("binary", lambda data: data[4:]),
    "org.apache.hadoop.io.NullWritable": Writable("void", lambda data: None),
}
_BATCH_ROWS = 10_000


class SequenceFileFormat:
    name = "sequencefile"
    suffixes = (".seq",)
    locator = LocatorShape(("position", "number"))
    options = OptionTable()
    local_times = False
    by_position = False

    def columns(self, file: DataFile, options: Mapping[str, str]) -> tuple[Column, ...]:
        head = head_of(file.read(0, 4096), file.uri)
        return Column("key", _writable(head.key_class).type), Column("value", _writable(head.value_class).type)

    def read(self, file: DataFile, reading: Reading, names: Sequence[str] | None = None) -> Iterator[Located]:
        data = file.read(0, file.size)
        head = head_of(data, file.uri)
        batch: list[Pair] = []
        for pair in pairs(head, data, head.length):
            batch.append(pair)
            if len(batch) == _BATCH_ROWS:
                yield self._located(batch, head, reading, names)
                batch = []
        if batch:
            yield self._located(batch, head, reading, names)

    def fetch(
        self,
        file: DataFile,
        reading: Reading,
        locators: pa.RecordBatch,
        names: Sequence[str] | None = None,
        memory: Memory = NO_MEMORY,
    ) -> pa.Table:
        data = file.read(0, file.size)
        head = head_of(data, file.uri)
        found: list[Pair] = []
        blocks: dict[int, list[Pair]] = {}
        for locator in locators.to_pylist():
            position = locator["position"]
            if position not in blocks:
                blocks[position] = list(pairs(head, data, position, position + 1))
            found.append(blocks[position][locator["number"]])
        return pa.Table.from_batches([self._located(found, head, reading, names).records])

    def _located(self, found: Sequence[Pair], head: Head, reading: Reading, names: Sequence[str] | None) -> Located:
        values = {
            "key": [_writable(head.key_class).value(pair.key) for pair in found],
            "value": [_writable(head.value_class).value(pair.value) for pair in found],
        }
        wanted = [column for column in reading.file_columns if names is None or column.name in names]
        records = pa.record_batch(
            [pa.array(values[column.name], column.arrow.type) for column in wanted], [c.name for c in wanted]
        )
        places = [[pair.position for pair in found], [pair.number for pair in found]]
        return Located(records, pa.record_batch([pa.array(p, pa.int64()) for p in places], schema=self.locator.schema))


def _writable(name: str) -> Writable:
    if name not in _WRITABLES:
        raise Unsupported(f"values of the class {name} are not known to this reader", detail="TYPE")
    return _WRITABLES[name]


SEQUENCE_FILE = SequenceFileFormat()
