"""The fields of CSV records, found by quote parity over whole chunks.

A separator parts two fields where the number of quotes before it in its record is even. A quote behind an escape (that is
not escaped itself) does not count. That is right as long as quotes are in order: an opening one stands at the start of a
field, a closing one at its end; between them quotes come in pairs if the quote is its own escape, and behind an escape if
it is not; and outside of quotes none is behind an escape. Each chunk is checked for that; a record that breaks it is
refused.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from grebe.errors import Unsupported
from grebe.formats.text_records import Breaks, Bytes, Longs, Records, spans_of

_LF, _CR = 10, 13
_NONE = -1
MOST_COLUMNS = 20_480
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Dialect:
    """Single bytes; `_NONE` for a quote or an escape that is switched off."""

    separator: int
    quote: int
    escape: int

    @classmethod
    def of(cls, separator: str, quote: str, escape: str) -> "Dialect":
        unescaped = {"\\t": "\t", "\\\\": "\\", "\\0": "\0"}.get(separator, separator)
        for name, text in (("sep", unescaped), ("quote", quote), ("escape", escape)):
            if len(text.encode()) > 1 or (name == "sep" and not text):
                raise Unsupported(
                    f"CSV with {name}={text!r}, more than one byte, cannot be read without Spark",
                    detail="READER_OPTION",
                )
        if unescaped in (quote, escape):
            raise Unsupported(
                f"CSV with sep={unescaped!r} for its quote or escape as well cannot be read without Spark",
                detail="READER_OPTION",
            )
        return cls(ord(unescaped), ord(quote) if quote else _NONE, ord(escape) if escape else _NONE)

    @property
    def doubles(self) -> bool:
        """Whether a quote within quotes is written twice."""
        return self.quote == self.escape

    @property
    def escapes(self) -> bool:
        """Whether a quote within quotes stands behind an escape."""
        return _NONE not in (self.quote, self.escape) and not self.doubles

    def quotes(self, data: Bytes, starts: Longs) -> tuple[Longs, Longs]:
        """Where in records that start there quotes open and close, and where quotes are escaped."""
        quotes = np.flatnonzero(data == self.quote)
        escapes = np.flatnonzero(data == self.escape) if self.escapes and len(quotes) else quotes[:0]
        if not len(escapes):
            return quotes, escapes
        # Escapes in a row escape each other, in pairs, from the first one of the record on.
        row_starts = np.append(True, (np.diff(escapes) != 1) | _among(escapes[1:], starts))
        first = np.maximum.accumulate(np.where(row_starts, np.arange(len(escapes)), 0))
        before = np.maximum(np.searchsorted(escapes, quotes) - 1, 0)
        behind = (escapes[before] == quotes - 1) & ~_among(quotes, starts)
        escaped = behind & ((before - first[before]) % 2 == 0)
        return quotes[~escaped], quotes[escaped]


@dataclass(frozen=True, slots=True)
class Field:
    """One column of some records as text, NULL where the record has no such field, and where it was quoted."""

    text: pa.LargeBinaryArray
    quoted: pa.BooleanArray


def fields_of(found: Records, dialect: Dialect, wanted: Sequence[int] | None, uri: str) -> list[Field]:
    """Return the wanted columns of records, by number from 0; None for all that any of them has. No record may be empty."""
    data, starts, ends = spans_of(found.values)
    quotes, escaped = dialect.quotes(data, starts)
    _check_quotes(data, starts, ends, quotes, escaped, dialect, found, uri)
    parts = np.flatnonzero(data == dialect.separator)
    before = np.searchsorted(quotes, starts)
    if len(quotes):
        record = np.searchsorted(starts, parts, "right") - 1
        parts = parts[(np.searchsorted(quotes, parts) - before[record]) % 2 == 0]
    # The end of a record is a separator of no bytes; at equal places it comes before the separator that starts the
    # next record.
    order = np.argsort(np.concatenate((ends, parts)), kind="stable")
    stops = np.concatenate((ends, parts))[order]
    nexts = np.concatenate((ends, parts + 1))[order]
    begins = np.concatenate((starts[:1], nexts[:-1]))
    first = np.arange(len(starts)) + np.searchsorted(parts, starts)
    count = np.diff(np.append(first, len(stops)))
    quoted = (stops - begins >= 2) & (np.append(data, np.uint8(0))[np.minimum(begins, len(data))] == dialect.quote)
    bounds = np.empty(2 * len(stops) + 1, np.int64)
    bounds[0:-1:2], bounds[1::2], bounds[-1] = begins + quoted, stops - quoted, nexts[-1] if len(nexts) else 0
    pieces = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), 2 * len(stops), [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    )
    fields = []
    for number in _all_columns(count, uri) if wanted is None else wanted:
        rows = pa.array(first + number, mask=count <= number)
        text = pieces.take(pc.multiply(rows, 2))
        was_quoted = pa.array(quoted).take(rows)
        if dialect.doubles and len(quotes):
            pair = bytes([dialect.quote])
            text = pc.if_else(was_quoted, pc.replace_substring(text, pair * 2, pair), text)
        if dialect.escapes and len(quotes):
            text = pc.if_else(was_quoted, _unescaped(text, dialect), text)
        fields.append(Field(text, was_quoted))
    return fields


def _all_columns(counts: Longs, uri: str) -> Sequence[int]:
    found = int(counts.max(initial=0))
    if found > MOST_COLUMNS:
        raise Unsupported(
            f"{uri} has a record of {found:,} fields, and Spark reads at most {MOST_COLUMNS:,}; look at its separator",
            detail="SCHEMA",
        )
    return range(found)


def multi_line_breaks(dialect: Dialect, uri: str) -> Breaks:
    """Breaks of the records of one file with `multiLine`. Spark takes the first kind of line break for the only one,
    and rewrites those within quotes; so a file is read if it has no CR at all, or if every break is CRLF and none is
    within quotes."""
    seen: set[str] = set()

    def breaks(buffer: Bytes, last: bool) -> tuple[Longs, Longs]:
        feeds = np.flatnonzero(buffer == _LF)
        returns = np.flatnonzero(buffer == _CR)
        if not last and len(returns) and returns[-1] == len(buffer) - 1:
            returns = returns[:-1]
        quotes, _ = dialect.quotes(buffer, np.zeros(1, np.int64))
        ends = feeds[np.searchsorted(quotes, feeds) % 2 == 0]
        seen.update(["CR"] * bool(len(returns)))
        seen.update(["LF"] * bool(len(feeds) and not len(returns)))
        if len(seen) > 1 or (len(returns) and not (np.array_equal(returns, feeds - 1) and len(ends) == len(feeds))):
            raise Unsupported(
                f"{uri} mixes kinds of line breaks; with multiLine only Spark can read it", detail="LINE_BREAKS"
            )
        return ends - bool(len(returns)), ends + 1

    return breaks


def _check_quotes(
    data: Bytes,
    starts: Longs,
    ends: Longs,
    quotes: Longs,
    escaped: Longs,
    dialect: Dialect,
    found: Records,
    uri: str,
) -> None:
    if not len(quotes) and not len(escaped):
        return
    record = np.searchsorted(starts, quotes, "right") - 1
    number = np.arange(len(quotes)) - np.searchsorted(quotes, starts)[record]
    opening = number % 2 == 0
    at_start, at_end = quotes == starts[record], quotes + 1 == ends[record]
    before = data[np.maximum(quotes - 1, 0)]
    after = data[np.minimum(quotes + 1, len(data) - 1)]
    paired: Flags = np.zeros(len(quotes), np.bool_)
    if dialect.doubles:
        # A closing quote with an opening one right behind it is one quote of the text.
        together = ~opening[:-1] & (np.diff(quotes) == 1) & (record[:-1] == record[1:])
        paired[:-1] |= together
        paired[1:] |= together
    fine = paired | np.where(opening, at_start | (before == dialect.separator), at_end | (after == dialect.separator))
    wrong = np.zeros(len(starts), np.bool_)
    wrong[record[~fine]] = True
    wrong |= np.bincount(record, minlength=len(starts)) % 2 == 1
    of = np.searchsorted(starts, escaped, "right") - 1
    outside = (np.searchsorted(quotes, escaped) - np.searchsorted(quotes, starts)[of]) % 2 == 0
    wrong[of[outside]] = True
    if wrong.any():
        place = int(found.offsets[np.flatnonzero(wrong)[0]])
        raise Unsupported(
            f"the record at byte {place} of {uri} has quotes or escapes that only Spark can read; read it through Spark",
            detail="QUOTES",
        )


def _among(places: Longs, ascending: Longs) -> Flags:
    """Which of these are in the other, which is not empty."""
    found: Flags = ascending[np.minimum(np.searchsorted(ascending, places), len(ascending) - 1)] == places
    return found


def _unescaped(text: pa.LargeBinaryArray, dialect: Dialect) -> pa.LargeBinaryArray:
    """Without the escapes before quotes and before other escapes."""
    escape, quote = (re.escape(chr(one)) for one in (dialect.escape, dialect.quote))
    pattern = f"{escape}({escape}|{quote})"
    return pc.replace_substring_regex(text.cast(pa.large_string()), pattern, r"\1").cast(pa.large_binary())
