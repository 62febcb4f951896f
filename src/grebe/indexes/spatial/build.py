"""The entries of a spatial index in Spark: corners, file, row, packed so that entries near each other lie near each other.

Sort-Tile-Recursive: the plane is cut into vertical strips that hold about as many entries each (by a sample of their centres), and
each strip is sorted from bottom to top. Cut into chunks, that tiles the plane by boxes of about as many entries, however these
crowd. Partitions are ranges of strips. Centres that are shared by more rows than a partition takes are spread over several.

What has no finite box (a NULL, NaN or infinite coordinate, an empty or unreadable geometry) lies apart, in the first partitions.
"""

import math
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from grebe.indexes.classic import functions
from grebe.indexes.content import entries
from grebe.indexes.content.by_range import column, quoted
from grebe.indexes.content.ranges import numbers_landing_in
from grebe.indexes.kind import FILE_COLUMN, Arranged, LocatedRows, Rows
from grebe.indexes.spatial.envelopes import with_envelopes
from grebe.indexes.spatial.shape import WKB, Places, places_of
from grebe.log.entry import IndexSpec

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CHUNK_ROWS = 2_048
_SAMPLED_PER_STRIP = 200
_LEAST_SAMPLED = 20_000
_MOST_STRIPS = 1024
_SEED = 42
_STRIP, _HEIGHT = "_grebe_strip", "_grebe_height"
_PLAIN_BYTES = 8


def arrange(index: str, spec: IndexSpec, rows: Rows) -> Arranged:
    places = places_of(index, spec)
    taken = entries.taken(rows, {one.path[0] for one in places.columns}, places.locators, spec.properties["file_level"])
    if places.shape.layout is not None:
        entries.require_located_alike(index, taken, places.locators)
    counted = rows.counted(_entries(places, taken), whole=True)
    count = rows.facts.rows if taken.rows is None else taken.rows
    laid, odd = _packed(counted, places, [FILE_COLUMN, *taken.locators], count)
    return Arranged(
        frame=laid.select(*map(column, counted.columns)),
        options={**_writer(places, taken.locators), "maxRecordsPerFile": str(entries.FILE_ROWS)},
        properties={
            "locators": list(taken.locators),
            "file_level": taken.file_level,
            "odd_parts": odd,
            "layout": {
                "buckets": 0,
                "bucket_by": [],
                "sort_by": [],
                "along": [] if places.form == WKB else [one.content for one in places.corners],
                "reason": "packed by strips of the plane: a spatial index",
            },
        },
        maps=bool(taken.locators),
    )


def _entries(places: Places, taken: LocatedRows) -> "DataFrame":
    chosen = [functions.col(quoted(*one.path)).alias(one.content) for one in places.columns]
    frame = taken.frame.select(*chosen, FILE_COLUMN, *taken.locators)
    return with_envelopes(frame, places.columns[0].content) if places.form == WKB else frame


def _packed(frame: "DataFrame", places: Places, others: list[str], rows: int) -> tuple["DataFrame", int]:
    """Also how many partitions hold what has no finite box."""
    parts = entries.parts_for(rows)
    of_each = max(1, min(round(math.sqrt(rows / CHUNK_ROWS) / parts), _MOST_STRIPS // parts))
    across, up = _centres(places)
    sample = _sample(frame, across, parts * of_each, rows)
    finite = sorted(value for value in sample if value is not None)
    odd = max(1, math.ceil(parts * (1 - len(finite) / len(sample)))) if sample else 1
    apart = [column(name) for name in others]
    strip = _strip(across, _cuts(finite, parts * of_each), of_each, apart)
    number = functions.when(
        column(_STRIP).isNull(), functions.pmod(functions.hash(*apart), functions.lit(odd))
    ).otherwise(functions.floor(column(_STRIP) / functions.lit(of_each)) + functions.lit(odd))
    landing = functions.array(*(functions.lit(int(one)) for one in numbers_landing_in(odd + parts)))
    laid = frame.withColumn(_STRIP, functions.when(across.isNotNull(), strip)).withColumn(_HEIGHT, up)
    laid = laid.repartition(odd + parts, functions.element_at(landing, number.cast("int") + functions.lit(1)))
    corners = [column(one.content) for one in places.corners]
    nulls = [one.isNull() for one in corners]
    return laid.sortWithinPartitions(column(_STRIP), column(_HEIGHT), *nulls, *corners, *apart), odd


def _centres(places: Places) -> tuple["Column", "Column"]:
    """x and y of the middle of each box; NULL without a finite box."""
    numbers = [column(one.content).cast("double") for one in places.corners]
    low, high = functions.lit(-math.inf), functions.lit(math.inf)
    finite = functions.lit(True)
    for one in numbers:
        # A NaN is greater than all numbers.
        finite = finite & (one > low) & (one < high)
    half = functions.lit(2.0)
    middles = [least / half + most / half for least, most in zip(numbers[:2], numbers[-2:], strict=True)]
    across, up = (functions.when(finite, one) for one in middles)
    return across, up


def _sample(frame: "DataFrame", across: "Column", strips: int, rows: int) -> list[float | None]:
    wanted = max(_LEAST_SAMPLED, strips * _SAMPLED_PER_STRIP)
    sampled = frame.select(across.alias(_STRIP)).sample(min(1.0, wanted / max(1, rows)), seed=_SEED)
    # The limit is there for the case that the number of rows was guessed far too low.
    return [row[0] for row in sampled.limit(4 * wanted).repartition(1).collect()]


def _cuts(finite: Sequence[float], strips: int) -> list[tuple[float, int, int]]:
    """Where strips begin: a centre, and the first and the last strip that begins there."""
    starts = [(finite[len(finite) * number // strips], number) for number in range(1, strips)] if finite else []
    found = []
    for value, group in groupby(starts, key=lambda start: start[0]):
        numbers = [number for _, number in group]
        found.append((value, numbers[0], numbers[-1]))
    return found


def _strip(
    across: "Column", cuts: Sequence[tuple[float, int, int]], of_each: int, apart: Sequence["Column"]
) -> "Column":
    """The number of the strip that a centre lies in, by halving. Rows of a centre at which strips of several partitions begin are
    spread over these partitions, each in one strip of it."""

    def spread(first: int, last: int) -> "Column":
        begin = [max(first, part * of_each) for part in range(first // of_each, last // of_each + 1)]
        choice = functions.pmod(functions.hash(*apart), functions.lit(len(begin)))
        return functions.element_at(functions.array(*map(functions.lit, begin)), choice + functions.lit(1))

    def below(low: int, high: int) -> "Column":
        if low < high:
            middle = (low + high) // 2
            beyond = across >= functions.lit(cuts[middle][0])
            return functions.when(beyond, below(middle + 1, high)).otherwise(below(low, middle))
        if low == 0:
            return functions.lit(0)
        value, first, last = cuts[low - 1]
        if first // of_each == last // of_each:
            return functions.lit(last)
        return functions.when(across == functions.lit(value), spread(first, last)).otherwise(functions.lit(last))

    return below(0, len(cuts))


def _writer(places: Places, locators: Sequence[str]) -> dict[str, str]:
    options = {
        "parquet.writer.version": "v2",
        "parquet.block.row.count.limit": str(CHUNK_ROWS),
        "parquet.page.row.count.limit": str(CHUNK_ROWS),
    }
    if not entries.cuts_by_rows():
        width = _PLAIN_BYTES * (len(places.content) - 1)
        options["parquet.block.size"] = str(CHUNK_ROWS * width)
    for name in (*(one.content for one in places.corners), *locators):
        # No coordinate comes often enough to be worth a dictionary.
        options[f"parquet.enable.dictionary#{name}"] = "false"
    return options
