"""Rows full of edges, and predicates over functions of their columns, as SQL text."""

import random
from collections.abc import Iterator
from decimal import Decimal
from itertools import cycle, islice

import pyarrow as pa

from grebe.predicate.text import to_sql
from grebe.predicate.tree import Literal
from grebe.predicate.types import BIGINT, DATE, INT, STRING, TIMESTAMP, TIMESTAMP_NTZ, TINYINT, Type, decimal
from tests.predicate.generators import DAY, column_of

HOUR = DAY // 24
# Where clocks change: New York in both directions, Samoa leaves out a day, São Paulo its midnight and shows the hour before it
# twice, Kathmandu moves by a quarter of an hour, New York leaves local mean time.
CHANGES = [
    1_583_650_800_000_000,
    1_604_210_400_000_000,
    1_325_239_200_000_000,
    1_541_300_400_000_000,
    1_518_919_200_000_000,
    504_901_800_000_000,
    -2_717_650_800_000_000,
]
MOMENTS = [
    *(change + shift for change in CHANGES for shift in (-DAY, -HOUR, -1, 0, HOUR // 2, HOUR, 20 * HOUR)),
    *(0, -1, 1, 1_577_836_800_000_000, 1_577_836_799_999_999, 1_577_854_800_000_000, 1_709_164_800_123_456),
    # 1582, 1500, the years 1 and 0, before them; 9999, 10000, 20000, 250000
    *(-12_219_292_800_000_001, -14_825_808_000_000_000, -62_135_596_800_000_000, -62_135_596_800_000_001),
    *(-93_692_592_000_000_000, 253_402_300_799_999_999, 253_402_300_800_000_000, 569_000_000_000_000_000),
    *(7_800_000_000_000_000_000, -9_000_000_000_000_000_000),
]
DAYS = sorted({moment // DAY + shift for moment in MOMENTS for shift in (0, 1)})
FAR_DAYS = [2**31 - 1, 2**31 - 5, -(2**31) + 900, -(2**31) + 801, 100_000_000, -100_000_000, 0, 18_262]
WORDS = [
    "",
    "a",
    "ab",
    "abc",
    "abcd",
    "abd",
    "ac",
    "b",
    "A",
    "a ",
    "ab ",
    " a",
    "a%b",
    "ä",
    "äb",
    "é",
    "\uffff",
    "\uffffa",
]
WORDS += ["\U0001f426", "\U0001f426a", "a\U0001f426b", "\U0010ffff", "\U0010ffff\U0010ffff", "a\0", "ab\U0010ffff"]
NUMBERS = [0, 1, -1, 2, 3, 4, 5, 7, 8, 10, 100, -100, 500_000_000, -500_000_000]
COLUMNS: dict[str, tuple[Type, list[object]]] = {
    "a": (INT, list(NUMBERS)),
    "t": (TINYINT, [0, 1, -1, 5, 127, 126, -128, -127]),
    "b": (BIGINT, [*NUMBERS, 2**60, -(2**60)]),
    "p": (
        decimal(9, 2),
        [Decimal(text) for text in ("0.00", "1.50", "-1.50", "0.01", "9999999.99", "-9999999.99", "2.72")],
    ),
    "d": (DATE, list(DAYS)),
    "far": (DATE, list(FAR_DAYS)),
    "ts": (TIMESTAMP, list(MOMENTS)),
    "n": (TIMESTAMP_NTZ, list(MOMENTS)),
    "s": (STRING, list(WORDS)),
}
ROWS = 2 * len(MOMENTS) + 1


def table() -> pa.Table:
    """The columns run through their values at different paces, with a NULL at the end of each round."""
    return pa.table(
        {name: column_of(kind, list(islice(cycle([*pool, None]), ROWS))) for name, (kind, pool) in COLUMNS.items()}
    )


_YEARS = [-44, 0, 1, 1582, 1883, 1969, 1970, 1986, 2011, 2012, 2018, 2020, 9999, 10_000, 20_000, 5_881_580, -5_877_641]
_UNITS = [
    "year",
    "YYYY",
    "quarter",
    "MON",
    "month",
    "week",
    "day",
    "hour",
    "minute",
    "second",
    "millisecond",
    "microsecond",
]
_YEAR_TERMS = ["year(d)", "year(ts)", "year(n)", "year(far)", "year(d) + 1", "4000 - year(ts)", "year(date_add(d, 30))"]
_NUMBER_TERMS = [
    *("a + 5", "5 + a", "a - 3", "7 - a", "-a", "a * 3", "a * -2", "(a + 1) * 2", "-(a - 1)", "a * 1", "0 - a"),
    *(
        "t + 1",
        "t * 100",
        "-CAST(t AS int)",
        "2 - t",
        "CAST(a AS bigint) * 10",
        "b + 1",
        "b * 2 - 1",
        "1L + a",
        "b - 5",
    ),
]
_SECOND_TERMS = ["unix_seconds(ts)", "CAST(ts AS bigint)", "unix_millis(ts)", "unix_micros(ts)"]
_DAY_TERMS = [
    *("CAST(ts AS DATE)", "to_date(ts)", "date(n)", "CAST(n AS DATE)", "d + 10", "d - 400", "1 + d", "date_add(ts, 1)"),
    *("date_sub(far, 3)", "far + 7", "trunc(n, 'mm')", "to_date(d)", "trunc(far, 'YEAR')"),
    *(f"trunc({column}, '{unit}')" for column in ("d", "ts") for unit in ("year", "QUARTER", "mm", "week")),
]
_MOMENT_TERMS = [*(f"date_trunc('{unit}', ts)" for unit in _UNITS), "date_trunc('month', d)", "date_trunc('day', n)"]
_TEXT_TERMS = [
    "left(s, 1)",
    "left(s, 2)",
    "substring(s, 1, 3)",
    "substr(s, 0, 2)",
    "left(left(s, 3), 2)",
    "left(s, 100)",
]
_DECIMAL_TERMS = ["p + 1.5", "p * 2.5", "1 - p", "-p", "p * 3", "a + 0.5", "t * 1.25", "2.5 * a", "p - 1.505"]
_OPERATORS = ["=", "=", "<>", "<", "<=", ">", ">=", "<=>"]


def predicates(seed: int, count: int) -> list[str]:
    """Texts, each once. Most of them are simple; some combine two."""
    chance = random.Random(seed)
    made: dict[str, None] = {}
    while len(made) < count:
        text = _simple(chance)
        if chance.random() < 0.15:
            text = f"({text}) {chance.choice(['AND', 'OR', 'AND NOT'])} ({_simple(chance)})"
        made[text] = None
    return list(made)


def _simple(chance: random.Random) -> str:
    term, literals = _term(chance)
    shape = chance.random()
    if shape < 0.66:
        sides = [term, chance.choice(literals)]
        return f" {chance.choice(_OPERATORS)} ".join(sides if chance.random() < 0.8 else reversed(sides))
    if shape < 0.86:
        items = chance.sample(literals, min(len(literals), chance.choice([1, 2, 3, 40]))) + ["NULL"] * (
            chance.random() < 0.2
        )
        return f"{term} {chance.choice(['IN', 'IN', 'NOT IN'])} ({', '.join(items)})"
    if shape < 0.95:
        return f"{term} BETWEEN {chance.choice(literals)} AND {chance.choice(literals)}"
    return f"{term} IS {chance.choice(['', 'NOT '])}NULL"


def _term(chance: random.Random) -> tuple[str, list[str]]:
    """A function of a column, and what it may be compared with."""
    days = [to_sql(Literal(day, DATE)) for day in DAYS]
    moments = [to_sql(Literal(moment + shift, TIMESTAMP)) for moment in MOMENTS for shift in (0, HOUR)]
    groups: list[tuple[list[str], list[str]]] = [
        (_YEAR_TERMS, [*map(str, _YEARS), "2020L", "2019.5"]),
        (
            _NUMBER_TERMS,
            [str(number) for number in range(-12, 13)] + ["1.5", "300", "-2147483648", "2147483647", "10L"],
        ),
        (_SECOND_TERMS, [str(change // scale) + "L" for change in CHANGES for scale in (1_000_000, 1_000, 1)]),
        (_DAY_TERMS, [*days, "'2020-03-08'", "'2011-12-30'"]),
        (_MOMENT_TERMS, [*moments, "'2020-03-01'", "DATE '2018-11-04'", "'2011-12-31'", "'2018-02-17 23:00:00'"]),
        (_TEXT_TERMS, [to_sql(Literal(word, STRING)) for word in WORDS]),
        (_DECIMAL_TERMS, ["0", "1.5", "-1.5", "3", "2.51", "0.005", "10.5", "-9999999.99", "24999999.975", "4"]),
    ]
    terms, literals = groups[chance.choices(range(len(groups)), [3, 4, 1, 4, 4, 3, 2])[0]]
    return chance.choice(terms), literals


AT_THE_ENDS = [
    *(
        "a + 1 = 5",
        "a - 1 < 7",
        "5 - a > 0",
        "-a <> 3",
        "a * 2 <= 10",
        "(a + 1) * 2 > 8",
        "a + 1 IS NULL",
        "a + 1 IS NOT NULL",
    ),
    *(
        "a * -1 IN (1, 2)",
        "NOT (a + 1 = 5)",
        "CAST(a AS bigint) + 1 = 2147483648L",
        "b + 1 = 5",
        "-b >= 1",
        "b * 3 IN (3, 6)",
    ),
    *(
        "a - -2147483648 > 0",
        "1L + a > 0",
        "date_add(d, 1) > DATE '2020-01-01'",
        "d - 1 < DATE '2020-01-01'",
        "year(d) > 2020",
    ),
    *(
        "trunc(d, 'MM') = DATE '2020-01-01'",
        "trunc(d, 'QUARTER') = DATE '2020-01-01'",
        "trunc(d, 'week') > DATE '2020-01-01'",
    ),
    *(
        f"date_trunc('{unit}', ts) > TIMESTAMP '2020-01-01 00:00:00Z'"
        for unit in ("year", "hour", "second", "microsecond")
    ),
    *(
        "date_trunc('day', d) < TIMESTAMP '2020-01-01 00:00:00Z'",
        "CAST(ts AS DATE) > DATE '2020-01-01'",
        "year(ts) < 2000",
    ),
    "unix_seconds(ts) > 0",
]


def ends() -> Iterator[tuple[pa.Table, str]]:
    """A row of the least values of their types and one of the greatest, also as Spark writes them."""
    for number, wide in ((-(2**31), -(2**63)), (2**31 - 1, 2**63 - 1)):
        kinds = {"a": (INT, number), "b": (BIGINT, wide), "d": (DATE, number), "ts": (TIMESTAMP, wide)}
        row = pa.table({name: column_of(kind, [value]) for name, (kind, value) in kinds.items()})
        yield row, f"{number}, {wide}L, date_add(DATE '1970-01-01', {number}), timestamp_micros({wide}L)"
