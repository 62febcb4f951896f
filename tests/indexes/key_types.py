"""For each type of key some values, with its extremes and what is apt to go wrong."""

import datetime
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa

UTC = datetime.UTC
NAN = math.nan

KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [True, False]),
    "byte": (pa.int8(), [-128, 0, 127]),
    "short": (pa.int16(), [-(2**15), 5, 2**15 - 1]),
    "int": (pa.int32(), [-(2**31), -1, 0, 2**31 - 1]),
    "long": (pa.int64(), [-(2**63), 7, 2**63 - 1]),
    "float": (pa.float32(), [0.0, -0.0, NAN, math.inf, -math.inf, 1.5]),
    "double": (pa.float64(), [0.0, -0.0, NAN, math.inf, -math.inf, 5e-324, 1e300]),
    "small_decimal": (pa.decimal128(9, 2), [Decimal("-1.50"), Decimal("0.00"), Decimal("9999999.99")]),
    "decimal": (pa.decimal128(18, 4), [Decimal("-12345678901234.5678"), Decimal("1.0000")]),
    "large_decimal": (pa.decimal128(38, 10), [Decimal("-1234567890123456789012345678.0123456789"), Decimal(1)]),
    "text": (pa.string(), ["", "a", "ab", "\U0001f426", "\uffff", "a\x00b", "é"]),
    "binary": (pa.binary(), [b"", b"\x00", b"\x7f", b"\x80", b"\xff\xff"]),
    "day": (pa.date32(), [datetime.date(1600, 1, 1), datetime.date(1969, 12, 31), datetime.date(9999, 12, 31)]),
    "moment": (
        pa.timestamp("us", "UTC"),
        [datetime.datetime(1900, 1, 1, tzinfo=UTC), datetime.datetime(2024, 3, 31, 1, 30, 0, 123457, UTC)],
    ),
    "local": (pa.timestamp("us"), [datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), datetime.datetime(2500, 1, 1)]),
}


def keys_table(rows: int = 400) -> pa.Table:
    """All types beside each other; the values of each, and NULL, come again and again."""
    columns = {
        name: pa.array([[*values, None][row % (len(values) + 1)] for row in range(rows)], kind)
        for name, (kind, values) in KEYS.items()
    }
    return pa.table({**columns, "number": pa.array(range(rows), pa.int64())})


def ordered(values: list[Any]) -> list[Any]:
    """As Spark sorts: NULL, then the values, with NaN above all."""

    def rank(value: Any) -> tuple[int, Any]:
        if value is None:
            return 0, 0
        if isinstance(value, float) and math.isnan(value):
            return 2, 0
        return 1, value.encode() if isinstance(value, str) else value

    return sorted(values, key=rank)


def texts(values: list[Any]) -> list[str]:
    """To compare: NaN is one value, and so are 0.0 and -0.0, of which either may come first."""
    return ["0.0" if value == 0 and isinstance(value, float) else repr(value) for value in values]
