"""Columns that are made of a view's expressions piece by piece: they have the type and the values that Spark's own parser gives."""

from typing import TYPE_CHECKING

import pytest

from grebe.indexes.view.expressions import parsed
from grebe.indexes.view.spark_columns import spark_column
from testbed.spark import configured

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core]
EXPRESSIONS = """
    t0.i + 1
    (t0.i - 2L) * 3S % 4Y
    t0.i / 7
    t0.i div 2
    - t0.i
    ~ t0.i
    t0.i & 6 | 1 ^ 2
    1 + 2 * 3 - 4 / 2 % 3
    t0.d * 1.50
    t0.d * 2BD + 0.001BD
    t0.d * 100
    t0.f + 1.5D
    CAST(t0.f AS FLOAT) + 1.5F
    1E3 + t0.f
    2147483648
    9223372036854775808
    t0.i = 1 OR t0.i = 2 AND NOT t0.s = 'b'
    NOT t0.i = 1 AND t0.i < 3
    t0.i <=> NULL
    t0.i IS NULL
    t0.i IS NOT NULL
    (t0.i > 1) IS TRUE
    t0.i IS DISTINCT FROM 2
    t0.i IN (1, 3, NULL)
    t0.i NOT IN (1, 3)
    t0.i BETWEEN 1 AND 2
    t0.i NOT BETWEEN 1 AND 2
    t0.s LIKE 'a%'
    t0.s LIKE '%\\\\_%'
    t0.s LIKE '%/_%' ESCAPE '/'
    t0.s NOT LIKE '_'
    RLIKE(t0.s, '^[ab]')
    t0.s RLIKE 'b$'
    t0.s || '-' || t0.i
    concat(t0.s, 'it''s', "a", '\\n\\'')
    CASE WHEN t0.i > 2 THEN 'many' WHEN t0.i = 1 THEN 'one' END
    CASE t0.i WHEN 1 THEN 1.5BD ELSE 2 END
    IF(t0.i > 1, t0.s, 'none')
    coalesce(t0.s, 'none')
    CAST(t0.i AS STRING)
    CAST(t0.s AS BINARY)
    CAST(t0.i AS DECIMAL(12,3))
    CAST(t0.d AS DOUBLE)
    TRY_CAST(t0.s AS INT)
    CAST(NULL AS BIGINT)
    CAST('NaN' AS DOUBLE)
    X'0AFF'
    TRUE
    DATE '2024-02-29'
    TIMESTAMP '2024-02-29 12:34:56.789'
    TIMESTAMP_NTZ '2024-02-29 12:34:56.789'
    t0.t + INTERVAL '1 02:03:04' DAY TO SECOND
    t0.t - INTERVAL '36' HOUR
    t0.day + INTERVAL '1-2' YEAR TO MONTH
    t0.day - INTERVAL '3' DAY
    year(t0.day) * 100 + month(t0.day)
    date_trunc('MONTH', t0.t)
    trunc(t0.day, 'YEAR')
    date_add(t0.day, 3)
    datediff(t0.day, DATE '2024-01-01')
    date_format(t0.t, 'yyyy-MM')
    unix_timestamp(t0.t, 'yyyy-MM-dd HH:mm:ss')
    substring(t0.s, 1, 2)
    substr(t0.s, -1)
    TRIM(t0.s)
    TRIM(BOTH 'a' FROM t0.s)
    TRIM(LEADING 'a' FROM t0.s)
    TRIM(TRAILING 'b' FROM t0.s)
    TRIM(BOTH FROM t0.s)
    upper(t0.s)
    startswith(t0.s, 'a')
    round(t0.d, 1)
    abs(t0.i - 5)
    pmod(t0.i, 2)
    t0.p.x + 1
    t0.p.`y z`
    t0.a[0]
    t0.m['k']
    length(t0.`odd ``name`)
    lpad(CAST(t0.i AS STRING), 5, '0')
    greatest(t0.i, 2)
    xxhash64(t0.s, t0.i)
""".strip().splitlines()
MEASURES = [
    "count(1)",
    "count(t0.i)",
    "sum(t0.d)",
    "min(t0.s)",
    "sum(CAST(t0.i AS DOUBLE))",
    "CASE WHEN count(t0.d) > 0 AND sum(t0.d) IS NULL THEN CAST(raise_error('x') AS decimal(38,2)) ELSE sum(t0.d) END",
]
ROWS = """
    SELECT i, s, CAST(i * 1.25 AS DECIMAL(10,2)) AS d, i / 3D AS f, date_add(DATE '2024-01-30', i) AS day,
      timestamp_seconds(1700000000 + i * 100000) AS t, named_struct('x', i, 'y z', s) AS p, array(i, 2) AS a, map('k', i) AS m,
      s AS `odd ``name`
    FROM VALUES (1, 'a'), (2, 'ab'), (3, 'b_c'), (NULL, NULL), (7, ' ab ') AS t(i, s)
"""


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_an_expression_means_what_it_means_to_spark(spark: "SparkSession", ansi: str) -> None:
    from pyspark.sql import functions

    with configured(spark, {"spark.sql.ansi.enabled": ansi}):
        frame = spark.sql(ROWS).alias("t0")
        # To Spark 3.5 two quotes are the end of one text and the begin of another; what it writes itself has none.
        texts = [text.strip() for text in EXPRESSIONS if spark.version >= "4" or "''" not in text]
        ours = frame.select(*(spark_column(parsed(text, 1)).alias(f"c{n}") for n, text in enumerate(texts)))
        theirs = frame.select(*(functions.expr(text).alias(f"c{n}") for n, text in enumerate(texts)))
        pairs = zip(texts, ours.schema, theirs.schema, strict=True)
        assert {
            text: (one.dataType, other.dataType) for text, one, other in pairs if one.dataType != other.dataType
        } == {}
        for mine, own in zip(ours.collect(), theirs.collect(), strict=True):
            assert {t: (a, b) for t, a, b in zip(texts, mine, own, strict=True) if repr(a) != repr(b)} == {}
        made, expected = (frame.agg(*columns) for columns in _measures())
        assert made.collect() == expected.collect()
        assert [one.dataType for one in made.schema] == [one.dataType for one in expected.schema]


def _measures() -> "tuple[list[Column], list[Column]]":
    from pyspark.sql import functions

    ours = [spark_column(parsed(text, 1, True)).alias(f"c{n}") for n, text in enumerate(MEASURES)]
    return ours, [functions.expr(text).alias(f"c{n}") for n, text in enumerate(MEASURES)]
