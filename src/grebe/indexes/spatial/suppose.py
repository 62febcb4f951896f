"""What a spatial index would be like, by a sample of the table's rows."""

from grebe.indexes.content import entries
from grebe.indexes.spatial.shape import WKB, Places
from grebe.indexes.supposed import Sample, Supposed, along, entry_bytes

_OF_AN_ENVELOPE = 30
"""Bytes of its four corners, compressed."""


def suppose(places: Places, sample: Sample) -> Supposed:
    rows, geometry = sample.facts.rows, places.form == WKB
    laid = along(sample, () if geometry else places.shape.on, places.columns, "packed by strips of the plane")
    columns = places.shape.include if geometry else places.columns
    size = entry_bytes(sample, columns, len(places.locators), laid.order)
    size += rows * _OF_AN_ENVELOPE if geometry else 0
    properties = {**laid.properties, "odd_parts": 1}
    return Supposed(properties, size, rows, entries.parts_for(rows), None if geometry else laid.order)
