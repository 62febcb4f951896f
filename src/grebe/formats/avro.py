"""Avro: files are listed and told apart; their records are read with Spark only, since no reader belongs to Grebe's
core."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

import pyarrow as pa

from grebe.errors import Unsupported
from grebe.formats.options import OptionTable
from grebe.formats.protocol import BYTE_SPAN, NO_MEMORY, DataFile, Located, LocatorShape, Memory
from grebe.formats.reading import Column, Reading


class AvroFormat:
    name = "avro"
    suffixes = (".avro",)
    locator: LocatorShape = BYTE_SPAN
    options = OptionTable(
        defaults={"mode": "FAILFAST", "positionalfieldmatching": "false", "datetimerebasemode": "EXCEPTION"}
    )
    local_times = False
    by_position = False

    def columns(self, file: DataFile, options: Mapping[str, str]) -> tuple[Column, ...]:
        _refuse(file)

    def read(self, file: DataFile, reading: Reading, names: Sequence[str] | None = None) -> Iterator[Located]:
        _refuse(file)

    def fetch(
        self,
        file: DataFile,
        reading: Reading,
        locators: pa.RecordBatch,
        names: Sequence[str] | None = None,
        memory: Memory = NO_MEMORY,
    ) -> pa.Table:
        _refuse(file)


def _refuse(file: DataFile) -> NoReturn:
    raise Unsupported(
        f"{file.uri}: Avro is read with Spark only (`grebe.attach`), or by a package that brings a format of another name for it",
        detail="AVRO",
    )


AVRO = AvroFormat()
