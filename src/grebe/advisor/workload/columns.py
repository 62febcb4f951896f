"""Statistics of a table's columns for people, and for guesses at what a predicate takes: from a sample, kept beside the recorded
queries where such are kept."""

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from grebe.advisor.workload import statistics
from grebe.advisor.workload.sampling import sampled
from grebe.advisor.workload.statistics import ColumnStatistics, TableStatistics
from grebe.config import Config
from grebe.lookup.engine import Engine
from grebe.predicate.text import column_sql
from grebe.predicate.types import Type
from grebe.shown.records import Records
from grebe.store.protocol import Store

FIELDS = ("column", "type", "nulls", "distinct", "least", "quarter", "median", "three_quarters", "greatest")
_RANKS = (0.0, 0.25, 0.5, 0.75, 1.0)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True, slots=True)
class ColumnInfo:
    """Of a sample: `nulls` is a share, `distinct` an estimate for all rows, and the rest are quantiles, of text its beginning."""

    column: str
    type: str
    nulls: float
    distinct: float
    least: object
    quarter: object
    median: object
    three_quarters: object
    greatest: object


def statistics_of(engine: Engine, config: Config, store: Callable[[], Store], anew: bool) -> TableStatistics:
    """Those that are kept, or, `anew` or where there are none, of a sample: kept if queries are recorded."""
    known = statistics.load(store()) if not anew and config.record_workload else None
    if known is not None:
        return known
    rows, count = sampled(engine, [column.name for column in engine.snapshot.reading.columns])
    found = statistics.of_sample(rows, count)
    if config.record_workload:
        statistics.store(found, store(), config.workload_literals == "hashed")
    return found


def described(found: TableStatistics, type_of: Callable[[str], Type | None]) -> Records[ColumnInfo]:
    infos = []
    for path, one in found.columns.items():
        name = column_sql(path)
        kind = type_of(name)
        values = [_shown(one, rank, kind) for rank in _RANKS]
        infos.append(ColumnInfo(name, str(kind), round(one.nulls, 4), round(one.distinct), *values))
    return Records(infos, FIELDS, "No column has values that have an order.")


def _shown(one: ColumnStatistics, rank: float, kind: Type | None) -> object:
    key = one.quantile(rank)
    if key is None or kind is None:
        return None
    return _text(key) if not one.numeric else _value(key, kind)


def _text(key: str) -> str:
    return bytes.fromhex(key).decode(errors="replace")


def _value(number: float, kind: Type) -> Any:
    match kind.name:
        case "date":
            return (_EPOCH + datetime.timedelta(days=number)).date().isoformat()
        case "timestamp" | "timestamp_ntz":
            return (_EPOCH + datetime.timedelta(microseconds=number)).replace(tzinfo=None).isoformat(sep=" ")
        case "boolean":
            return bool(number)
    return int(number) if number.is_integer() and not kind.is_floating else number
