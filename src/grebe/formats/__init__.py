"""The bytes of one file: which records it holds, how to find each again, and what a reading makes of them. No
Spark."""

from grebe.formats.protocol import (
    BYTE_SPAN,
    NO_MEMORY,
    ROW_NUMBER,
    DataFile,
    Format,
    KeepsMaps,
    Located,
    LocatorShape,
    Memory,
)
from grebe.formats.reading import Column, Reading
from grebe.formats.registry import format_named, format_of_file

__all__ = [
    "BYTE_SPAN",
    "NO_MEMORY",
    "ROW_NUMBER",
    "Column",
    "DataFile",
    "Format",
    "KeepsMaps",
    "Located",
    "LocatorShape",
    "Memory",
    "Reading",
    "format_named",
    "format_of_file",
]
