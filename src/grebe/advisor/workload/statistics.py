"""What is known of the values of a table's columns, from a sample of its rows: enough to say about how many rows a predicate takes.

Of each column: NULLs, least and greatest value, a KLL sketch of its quantiles and an HLL sketch of its distinct values (both of
Apache DataSketches). They lie beside the recorded queries, in `workload/statistics.gix`, sealed JSON, replaced as a whole.
"""

import base64
import importlib.util
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from grebe.advisor.workload.blocks import FOLDER
from grebe.errors import CorruptIndex, Unsupported
from grebe.files.untrusted import decoding
from grebe.indexes.content.sealed import sealed, unsealed
from grebe.indexes.supposed import scaled
from grebe.predicate.arrow_types import from_arrow, to_physical
from grebe.predicate.tree import Path
from grebe.predicate.types import Type
from grebe.store.protocol import ObjectMissing, Store

PATH = f"{FOLDER}/statistics.gix"
_QUANTILES = 400
"""KLL's k: a rank is wrong by less than half a percent."""
_PREFIX = 64
"""Bytes of a text that tell it from others here."""
_DISTINCT = 12
"""HLL's lg k: a count is wrong by about two percent."""


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Of one column, or a field inside one."""

    nulls: float
    """The share of rows."""
    distinct: float
    """An estimate for the whole table."""
    numeric: bool
    """Whether values are ordered as numbers; else as text."""
    quantiles: bytes = b""
    """The sketch; empty where values must not be stored."""
    seen: bytes = b""
    """The sketch of distinct values, to be united with those of other samples."""

    def below(self, value: object, inclusive: bool) -> float | None:
        """The share of values that are not NULL and less than this one, or equal to it; None if that cannot be told."""
        key = _key(value, self.numeric)
        if key is None or not self.quantiles:
            return None
        sketch = _sketch(self.quantiles, self.numeric)
        return 0.0 if sketch.is_empty() else float(sketch.get_rank(key, inclusive))

    def quantile(self, rank: float) -> Any:
        """The value below which this share of the others lies, as the sketch keeps it; None if that cannot be told."""
        sketch = _sketch(self.quantiles, self.numeric) if self.quantiles else None
        if sketch is None or sketch.is_empty():
            return None
        ends = {0.0: sketch.get_min_value, 1.0: sketch.get_max_value}
        return ends[rank]() if rank in ends else sketch.get_quantile(rank)

    def equal(self, value: object) -> float:
        """The share of values that are equal to this one: of a frequent value by the sketch, else as of any other."""
        up_to, less = self.below(value, True), self.below(value, False)
        if up_to is None or less is None:
            return 1.0 / max(self.distinct, 1.0)
        outside = up_to <= 0.0 or less >= 1.0
        return 0.0 if outside else max(up_to - less, 1.0 / max(self.distinct, 1.0))


@dataclass(frozen=True, slots=True)
class TableStatistics:
    rows: int
    """Of the table."""
    columns: Mapping[Path, ColumnStatistics]


def of_sample(sample: pa.Table, rows: int) -> TableStatistics:
    """Of a table of so many rows, from some of them at random. Columns whose values have no order are left out."""
    _require_sketches()
    columns = {}
    for path, values in _leaves((), sample):
        kind = from_arrow(values.type)
        if kind.is_scalar and kind.name != "void":
            columns[path] = _column(to_physical(values, kind), kind, rows)
    return TableStatistics(rows, columns)


def _leaves(path: Path, table: pa.Table) -> "list[tuple[Path, pa.Array]]":
    found: list[tuple[Path, pa.Array]] = []
    for name in table.column_names:
        values = table[name].combine_chunks()
        if pa.types.is_struct(values.type):
            inner = [pc.struct_field(values, one) for one in range(values.type.num_fields)]
            names = [values.type.field(one).name for one in range(values.type.num_fields)]
            found += _leaves((*path, name), pa.table(inner, names=names))
        else:
            found.append(((*path, name), values))
    return found


def _column(values: pa.Array, kind: Type, rows: int) -> ColumnStatistics:
    from datasketches import PyStringsSerDe, hll_sketch, kll_doubles_sketch, kll_items_sketch

    numeric = kind.name not in ("string", "binary")
    there = values.drop_null()
    keys = [_key(value, numeric) for value in there.to_pylist()]
    seen = hll_sketch(_DISTINCT)
    counted = there.value_counts()
    for value in counted.field("values").to_pylist():
        seen.update(repr(value))
    once = int(pc.sum(pc.equal(counted.field("counts"), 1)).as_py() or 0)
    if numeric:
        quantiles = kll_doubles_sketch(_QUANTILES)
        quantiles.update(np.array(keys, np.float64))
        packed = bytes(quantiles.serialize())
    else:
        texts = kll_items_sketch(_QUANTILES)
        for key in keys:
            texts.update(key)
        packed = bytes(texts.serialize(PyStringsSerDe()))
    nulls = values.null_count / len(values) if len(values) else 0.0
    distinct = scaled(len(counted), once, len(there), rows * (1.0 - nulls))
    return ColumnStatistics(nulls, distinct, numeric, packed, bytes(seen.serialize_compact()))


def united(one: ColumnStatistics, other: ColumnStatistics) -> float:
    """How many distinct values two samples have together."""
    from datasketches import hll_sketch, hll_union

    union = hll_union(_DISTINCT)
    for each in (one, other):
        union.update(hll_sketch.deserialize(each.seen))
    return float(union.get_estimate())


def _key(value: object, numeric: bool) -> Any:
    """As the sketch compares it: text by its bytes, as Spark does, written so that the package's own text files take it."""
    match value:
        case bytes() if not numeric:
            return value[:_PREFIX].hex()
        case str() if not numeric:
            return value.encode(errors="surrogatepass")[:_PREFIX].hex()
        case bool() | int() | float() | Decimal() if numeric:
            number = float(value)
            return math.inf if math.isnan(number) else number  # NaN is the greatest, and no sketch takes it
    return None


@lru_cache(256)
def _sketch(packed: bytes, numeric: bool) -> Any:
    from datasketches import PyStringsSerDe, kll_doubles_sketch, kll_items_sketch

    try:
        if numeric:
            return kll_doubles_sketch.deserialize(packed)
        return kll_items_sketch.deserialize(packed, PyStringsSerDe())
    except RuntimeError as refused:
        raise ValueError(f"no sketch: {refused}") from refused


def _require_sketches() -> None:
    if importlib.util.find_spec("datasketches") is None:
        raise Unsupported(
            "statistics of columns need the package datasketches; install the extra `grebe[advisor]`",
            detail="NO_SKETCHES",
        )


def store(statistics: TableStatistics, into: Store, hashed: bool) -> None:
    """`hashed`: no value of the data is stored, so without the quantiles."""
    columns = []
    for path, one in statistics.columns.items():
        known = asdict(one)
        for name in ("quantiles", "seen"):
            known[name] = "" if hashed else base64.b64encode(known[name]).decode()
        columns.append({"path": path, **known})
    into.put(PATH, sealed(json.dumps({"rows": statistics.rows, "columns": columns}).encode()))


def load(of: Store) -> TableStatistics | None:
    """None where there are none, or none that can be read."""
    uri = f"{of.uri}/{PATH}"
    try:
        data = unsealed(of.get(PATH), uri)
        with decoding(lambda why: CorruptIndex(f"{uri} is damaged ({why})", detail="DAMAGED")):
            return _loaded(json.loads(data))
    except (ObjectMissing, CorruptIndex):
        return None


def _loaded(known: Any) -> TableStatistics:
    columns = {}
    for one in known["columns"]:
        path = tuple(one.pop("path"))
        one |= {name: base64.b64decode(one[name]) for name in ("quantiles", "seen")}
        made = columns[path] = ColumnStatistics(**one)
        if not all(isinstance(part, str) for part in path) or not isinstance(made.numeric, bool):
            raise TypeError("a column that is none")
        if not (0 <= made.nulls <= 1 and 0 <= made.distinct < math.inf):
            raise ValueError("shares and counts that are none")
        if made.quantiles:
            _require_sketches()
            made.quantile(0.5)  # what is no sketch is found out here
    if not isinstance(known["rows"], int) or known["rows"] < 0:
        raise ValueError("a number of rows that is none")
    return TableStatistics(known["rows"], columns)
