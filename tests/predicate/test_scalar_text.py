"""Strings are read as Spark reads them, whatever their shape."""

import math
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grebe.errors import Unsupported
from grebe.predicate import scalar_text
from grebe.predicate.casts import cast_values
from grebe.predicate.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    Type,
    decimal,
)
from tests.predicate import oracle as spark_oracle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ZONE = "America/New_York"
SEEDS = """
1|-12|+7|127|128|-129|32768|2147483648|9223372036854775807|9223372036854775808|-9223372036854775808|0000000000000000000000001
1.5|.5|5.|+.|-||1e3|1E-3|1e400|-1e-400|1.5d|2f|NaN|nan|+NaN|Infinity|-inf|+infinity|INF|0.1|16777217|3.4028236e38
3.4028235677973366e38|3.4028235677973362e38|3.40282356779733661637539395458142568447e38|-3.40282356779733661637539395458142568448e38
1.00000005960464477539062500001|-1.00000005960464477539062500001|1.000000059604644775390625|7.0064923216240854e-46|7.0064923216240853e-46
123456789012345678901234567890.12345678901234567890|1e38|1e37|99999999999999999999999999999999999999|0.5|2.5e-1|1234567.895
true|T|yes| no |0|off|on|FALSE
2020-01-01|2020-1-1|2020|2020-02|2020-02-30|2020-01-01T|2020-01-01 12|2020-01-01 12:30|2020-01-01 12:30:|2020-01-01 12:30:15
2020-01-01T12:30:15.|2020-01-01 12:30:15.1|2020-01-01 12:30:15.1234567|2020-01-01 12:30:15Z|2020-01-01 12:30:15.5+01:00
2020-01-01 12:30:15 +1|2020-01-01 12:30:15 +530|2020-01-01 12:30:15 +0530|2020-01-01 12:30:15 UTC+5:3|2020-01-01 12:30:15 PST
2020-01-01 12:30:15 America/New_York|2020-01-01 12:30:15 utc|2020-03-08 02:30:00|2020-11-01 01:30:00|1883-11-18 12:00:00
0001-01-01|-0001-01-01 00:00:00|+12020-01-01 00:00:00|294247-01-10 04:00:54.775807|294248-01-01|9999999-01-01|5881580-07-11
5881580-07-12|2020-01-01 24:00:00|2020-01-01 23:60:00|2020-01-01 23:59:60|99999-01-01|2020-01-01 1:2:3.4 GMT-8|2020-13-01
 2020-01-01 |2020-01-01T00:00:00,5|2020-01-01 00:00:00+18:00|2020-01-01 00:00:00+18:01|2020-01-01 00:00:00+5:30:15
""".replace("\n", "|").split("|")
ODD = "0123456789+-.:TZ eEdDfFxXinfaNUTC\t\n\x7f\x00\xa0٣,/"
DECIMALS = (decimal(10, 2), decimal(38, 0), decimal(38, 37))
INTEGERS = (TINYINT, SMALLINT, INT, BIGINT)


def strings(count: int) -> list[str]:
    """The seeds, and seeds with a few characters inserted, removed or replaced."""
    chance = random.Random(20)

    def changed(text: str) -> str:
        characters = list(text)
        for _ in range(chance.choice([1, 1, 2, 3])):
            at = chance.randrange(len(characters) + 1)
            characters[at : at + chance.randrange(2)] = chance.choice([[], [chance.choice(ODD)]])
        return "".join(characters)

    return list(dict.fromkeys([*SEEDS, *(changed(chance.choice(SEEDS)) for _ in range(count))]))


def ours(text: str, truncate: bool) -> list[Any]:
    moment = None if scalar_text.is_time_of_today(text) else scalar_text.to_timestamp(text, ZONE)
    return [
        scalar_text.to_boolean(text),
        *(scalar_text.to_integral(text, kind, truncate) for kind in INTEGERS),
        *(scalar_text.to_decimal(text, kind) for kind in DECIMALS),
        scalar_text.to_date(text),
        moment,
        scalar_text.to_timestamp_ntz(text) is not None,
        _bits(scalar_text.to_float(text)),
        _bits(scalar_text.to_double(text)),
    ]


def _bits(value: float | None) -> object:
    return None if value is None else "NaN" if math.isnan(value) else float(value).hex()


@pytest.mark.spark
@pytest.mark.core
@pytest.mark.parametrize("ansi", [True, False], ids=["ansi", "legacy"])
def test_a_string_is_read_as_by_spark(oracle: "SparkSession", tmp_path: Path, ansi: bool) -> None:
    function = "TRY_CAST" if ansi else "CAST"
    frame = spark_oracle.local_frame(oracle, pa.table({"s": strings(4_000)}), tmp_path)

    def cast(kind: Type) -> str:
        return f"{function}(s AS {kind})"

    asked = [
        *(cast(kind) for kind in (BOOLEAN, *INTEGERS, *DECIMALS)),
        f"unix_date({cast(DATE)})",
        f"CASE WHEN s RLIKE '^[\\\\s\\\\x00-\\\\x20\\\\x7f]*(T|[0-9]{{1,2}}:)' THEN NULL ELSE unix_micros({cast(TIMESTAMP)}) END",
        f"{cast(TIMESTAMP_NTZ)} IS NOT NULL",
        cast(FLOAT),
        cast(DOUBLE),
    ]
    with spark_oracle.settings(oracle, spark__sql__session__timeZone=ZONE, spark__sql__ansi__enabled=str(ansi).lower()):
        rows = frame.selectExpr("s", *asked).collect()
    checked = 0
    for text, *theirs in rows:
        try:
            expected = [*theirs[:-2], *map(_bits, theirs[-2:])]
            assert ours(text, truncate=not ansi) == expected, repr(text)
        except Unsupported:
            continue
        checked += 1
    assert checked > 0.95 * len(rows)


SHAPES = st.one_of(
    st.from_regex(r"-?[0-9]{1,18}", fullmatch=True),
    st.from_regex(r"-?[0-9]{1,18}\.[0-9]{1,18}", fullmatch=True),
    st.from_regex(r"[12][0-9]{3}-[01][0-9]-[0-3][0-9]", fullmatch=True),
    st.from_regex(r"[12][0-9]{3}-0[1-9]-[0-2][1-8][ T][0-2][0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?", fullmatch=True),
    st.sampled_from(SEEDS),
)
SLOW: dict[Type, Callable[[str], Any]] = {
    BOOLEAN: scalar_text.to_boolean,
    **{kind: partial(scalar_text.to_integral, kind=kind, truncate=False) for kind in INTEGERS},
    **{kind: partial(scalar_text.to_decimal, kind=kind) for kind in DECIMALS},
    FLOAT: scalar_text.to_float,
    DOUBLE: scalar_text.to_double,
    DATE: scalar_text.to_date,
    TIMESTAMP: lambda text: scalar_text.to_timestamp(text, ZONE),
    TIMESTAMP_NTZ: scalar_text.to_timestamp_ntz,
}


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(SHAPES, st.none()), max_size=20), st.sampled_from(list(SLOW)))
def test_whole_columns_are_read_as_each_string_alone(texts: list[str | None], kind: Type) -> None:
    column = pa.array(texts, pa.large_string())
    read = cast_values(column, STRING, kind, "ansi", ZONE)
    alone = [None if text is None else SLOW[kind](text) for text in texts]
    assert list(map(_comparable, read.values.to_pylist())) == list(map(_comparable, alone))
    malformed = [text is not None and value is None for text, value in zip(texts, alone, strict=True)]
    assert (np.zeros(len(texts), bool) if read.failed is None else read.failed).tolist() == malformed


def _comparable(value: object) -> object:
    return _bits(value) if isinstance(value, float) else value


@pytest.mark.parametrize("text", ["0x1p3", "0e50", "12:30:00"])
def test_what_spark_s_versions_or_the_day_decide_is_refused(text: str) -> None:
    kind = {"0x1p3": DOUBLE, "0e50": decimal(10, 2), "12:30:00": TIMESTAMP}[text]
    with pytest.raises(Unsupported):
        cast_values(pa.array([text], pa.large_string()), STRING, kind, "ansi", "UTC")
