"""Texts as people write them mean to us what they mean to Spark's own parser."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from grebe.errors import InvalidPredicate
from grebe.predicate.bind import bind
from grebe.predicate.evaluate import evaluate
from grebe.predicate.parse import parse
from tests.predicate import oracle as spark_oracle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core]

TABLE = pa.table(
    {
        "a": pa.array([1, 2, 3, -1, None], pa.int32()),
        "b": pa.array([1, 1, None, 5, 7], pa.int64()),
        "d": [1.5, -0.0, float("nan"), None, 1e3],
        "p": pa.array([150, 100, -5, 0, None], pa.int64()).cast(pa.decimal128(19, 0)).cast(pa.decimal128(21, 2)),
        "s": ["a", "a'b", "tab\there", "ä\\%", None],
        "flag": [True, False, None, True, False],
        "x": pa.array([b"\x1f", b"a", b"", None, b"\x01\xf2"], pa.binary()),
        "day": pa.array([0, 18_262, -719_162, None, 2_932_896], pa.int32()).view(pa.date32()),
        "at": pa.array([0, 18_000_000_000, 1_577_836_800_000_000, None, -1], pa.timestamp("us", "UTC")),
        "st": pa.array(
            [{"f": 1, "g h": "x"}, None, {"f": None, "g h": "y"}, {"f": 2, "g h": None}, {"f": 1, "g h": "x"}]
        ),
        "date": pa.array([1, 2, 3, 4, None], pa.int32()),
        "größe": pa.array([1, 2, 3, 4, None], pa.int32()),
        "order by": pa.array([1, 2, 3, 4, None], pa.int32()),
    }
)
ACCEPTED = r"""
a = 1
A=1
a == 1
a != 1
a <> 1 and b <=> 1
not a = 1 and flag
! a = 1
not a = 1 or not b = 1 and flag
a = 1 or b = 1 and flag
(a = 1 or b = 1) and flag
a = b is null
a = b is not null
a = 1 = flag
a < 2 = flag
a = 1 in (true)
a between 1 and 2 and flag
not a between 1 and 2 or flag
a not between 1 and 2
a between b and 5
a in (1, 2, null)
a not in (1, 2, null)
a in (b, 2)
a not in (b)
a is distinct from 1
a is not distinct from null
flag is true
flag is not true
flag is false
flag is unknown
flag is not unknown
(a = 1) is not true
s like 'a%'
s not like 'a%'
s like '%\'%'
s like 'ä\\\\\\%'
s like 'ä\\!%' escape '!'
s like '_'
s = 'a\'b'
s = "a'b"
s = 'tab\there'
s = 'tab\u0009here'
s = 'tab\011here'
s = 'ta' 'b\th' 'ere'
s = r'ä\%'
s = R"ä\%"
s = 'ä\\%'
s = 'ä\%'
s < 'b'
s > ''
a = 1L
a = 1S
b = 1Y
a = 1.0
a = 1.5
a < 1.5
a < 1.5BD
a > -1.5
a <= 1e0
a = 1e0D
d = 1.5F
d = 15e-1
d = .15e1
d = 1.5D
d = 0
p = 150
p = 150.00
p > 1e2BD
p < 99999999999999999999
a = 9223372036854775808
b = -9223372036854775808
x = X'1F'
x = x'1f2'
x = 'a'
day = date'2020-01-01'
day = DATE '2020'
day > '0001-01-01'
day < timestamp '2020-01-01 00:00:00'
at = timestamp'1970-01-01 00:00:00Z'
at >= TIMESTAMP '1970-01-01'
at < timestamp_ltz '2020-01-01 00:00:00+01:00'
at > timestamp_ntz '1970-01-01 00:00:00'
at = '1970-01-01T00:00:00.000'
cast(at as date) = day
cast(a as string) = '1'
cast(a as decimal(5, 1)) = 1.0
try_cast(s as int) is null
int(p) = 1
double('NaN') = d
string(a) like '_'
isnan(d)
isnull(a) or isnotnull(b)
startswith(s, 'a') or endswith(s, 'e') or contains(s, '%')
st.f = 1
st.`g h` = 'x'
ST.F is null
`order by` > 1
date = 1
`größe` = 1
a = 1 + 1
a = 7 / 2 - 0.5
a = 7 div 2
a = -7 % 2
a = 2 * (1 + 0.5)
a = -(-1)
a = +1
-1 = a
a = - 1
1 < a
1 = 1
null
true and not false
a = null
null <=> a
a = 1 -- comment
a /* comment */ = 1
""".strip().splitlines()
REFUSED = r"""
a =
a = 1 b
a = = 1
= 1
(a = 1
a = 1)
a in ()
a in 1
a between 1
a between 1 or 2
a is 1
a is not
a like
a like 'x' escape 'xx'
not
a and
a = 'x
a = `x
a = 300Y
a = 1e400D
a = 123456789012345678901234567890123456789
a = date '2020-02-30'
a = timestamp 'soon'
x = X'1G'
a ! = 1
nothing = 1
st.nothing = 1
flag = 1
day = 1
a
a and flag
not a
cast(a as decimal(50)) = 1
cast(a as) = 1
case when a
a = 1; a = 2
""".strip().splitlines()


@pytest.mark.parametrize("ansi", [True, False], ids=["ansi", "legacy"])
def test_they_have_the_same_answers(oracle: "SparkSession", tmp_path: Path, ansi: bool) -> None:
    zone = "America/New_York"
    with spark_oracle.settings(oracle, spark__sql__session__timeZone=zone, spark__sql__ansi__enabled=str(ansi).lower()):
        frame = spark_oracle.local_frame(oracle, TABLE, tmp_path)
        for text, theirs in zip(ACCEPTED, spark_oracle.ask(frame, ACCEPTED), strict=True):
            assert evaluate(TABLE, bind(parse(text), TABLE.schema, time_zone=zone, ansi=ansi)).to_pylist() == theirs, (
                text
            )


def spark_refuses(spark: "SparkSession", text: str) -> bool:
    try:
        spark.sql(f"SELECT * FROM texts WHERE {text}").collect()
    except Exception:  # noqa: BLE001 - parser, analyser and arithmetic raise different classes in different versions
        return True
    return False


def test_both_refuse_the_same(oracle: "SparkSession", tmp_path: Path) -> None:
    with spark_oracle.settings(oracle, spark__sql__ansi__enabled="true"):
        spark_oracle.local_frame(oracle, TABLE, tmp_path).createOrReplaceTempView("texts")
        for text in REFUSED:
            with pytest.raises(InvalidPredicate):
                bind(parse(text), TABLE.schema)
            assert spark_refuses(oracle, text), text


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("s = 'a''b'", [False, True, False, False, None]),  # Spark 3 reads two strings side by side
        ("at::date = date '1969-12-31'", [False, False, False, None, True]),
    ],
)
def test_what_is_new_in_spark_4_is_read_as_there(
    oracle: "SparkSession", tmp_path: Path, text: str, answer: spark_oracle.Answer
) -> None:
    assert evaluate(TABLE, bind(parse(text), TABLE.schema)).to_pylist() == answer
    if int(oracle.version.partition(".")[0]) >= 4:
        assert spark_oracle.ask(spark_oracle.local_frame(oracle, TABLE, tmp_path), [text]) == [answer]
