"""Views and queries made up by a seed: each view with queries that it may answer, and some that it may not.

The tables are small and full of what goes wrong: NULL in keys and measures, groups that exist in some files only, rows without a
partner in a join. All numbers are such that sums do not hang on their order.
"""

import random
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

FACTS, SHOPS, LANDS = "facts", "shops", "lands"
_ROWS, _FILES = 240, 4

_KEYS = ("a", "b", "d", "month(d)", "year(d)", "a % 3", "upper(b)", "k IS NULL", "coalesce(b, '-')")
_SHOP_KEYS = ("town", "land", "length(town)", "town || b")
_MEASURES = (
    "count(*)",
    "count(x)",
    "sum(x)",
    "min(x)",
    "max(x)",
    "avg(x)",
    "sum(p)",
    "avg(p)",
    "max(p)",
    "sum(q)",
    "avg(q)",
    "min(d)",
    "max(b)",
    "sum(w)",
    "avg(w)",
    "sum(x * 2 + 1)",
    "count(x + k)",
    "sum(CASE WHEN x > 3 THEN p END)",
)
_CONDITIONS = (
    "a > 2",
    "a IN (1, 3, 5)",
    "a BETWEEN 1 AND 6",
    "b = 'two'",
    "b <> 'two'",
    "b IS NOT NULL",
    "b LIKE 't%'",
    "d >= DATE'2024-03-01'",
    "d < DATE'2024-05-10' OR a = 4",
    "x > 1",
    "p < 50",
    "k IS NULL",
    "a % 3 = 1",
    "month(d) = 3",
)
_NARROWER = {
    "a > 2": ("a > 4", "a = 5", "a IN (4, 6)", "a >= 2"),
    "a IN (1, 3, 5)": ("a = 3", "a IN (1, 5)", "a IN (1, 2)"),
    "a BETWEEN 1 AND 6": ("a BETWEEN 2 AND 4", "a = 6", "a > 1"),
    "b = 'two'": ("b <=> 'two'", "b IN ('two')"),
    "b <> 'two'": ("b = 'one'", "b > 'two'"),
    "b IS NOT NULL": ("b = 'one'", "b LIKE 't%'", "b <=> 'two'"),
    "b LIKE 't%'": ("b LIKE 'th%'", "b = 'two'"),
    "d >= DATE'2024-03-01'": ("d > DATE'2024-03-01'", "d = DATE'2024-05-10'", "d >= DATE'2024-02-01'"),
    "x > 1": ("x > 3", "x = 2", "x >= 1"),
    "p < 50": ("p < 20", "p <= 50", "p = 12.5"),
}
"""What may stand in a query for a condition of its view: mostly less, sometimes a little more."""
_SHOP_CONDITIONS = ("town <> 'Ulm'", "land = 2", "town IS NOT NULL", "land < a")


@dataclass(frozen=True)
class Pairs:
    view: str
    queries: tuple[str, ...]


def write_tables(folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(_FILES):
        add_file(folder, number, chance)
    _write(
        folder / SHOPS / "0.parquet",
        {
            "id": [0, 1, 2, 3, 4, 6, None],
            "town": ["Ulm", "Bonn", "Ulm", None, "Kiel", "Jena", "Hof"],
            "land": [1, 2, 2, 3, None, 1, 1],
        },
        {"id": pa.int32(), "town": pa.string(), "land": pa.int32()},
    )
    _write(
        folder / LANDS / "0.parquet",
        {"nr": [1, 2, 3, 9], "label": ["north", "south", None, "east"]},
        {"nr": pa.int32(), "label": pa.string()},
    )


def add_file(folder: Path, number: int, chance: random.Random) -> None:
    def some(values: list[object], nulls: float = 0.1) -> list[object]:
        return [None if chance.random() < nulls else chance.choice(values) for _ in range(_ROWS // _FILES)]

    days = [f"2024-{month:02}-{day:02}" for month in (2, 3, 5) for day in (1, 10, 20)]
    table = {
        "a": some(list(range(number, 8))),
        "b": some(["one", "two", "three", "Two", ""]),
        "d": some(list(days)),
        "k": some([0, 1, 2]),
        "x": some(list(range(-3, 9))),
        "p": some([n / 4 for n in range(-40, 400, 7)]),
        "q": some([n * 1000 for n in range(40)]),
        "w": some([float(n) for n in range(20)]),
    }
    columns = pa.table(
        {
            "a": pa.array(table["a"], pa.int32()),
            "b": pa.array(table["b"], pa.string()),
            "d": pa.array(table["d"], pa.string()).cast(pa.date32()),
            "k": pa.array(table["k"], pa.int32()),
            "x": pa.array(table["x"], pa.int64()),
            "p": pa.array(table["p"], pa.float64()).cast(pa.decimal128(8, 2)),
            "q": pa.array(table["q"], pa.int64()).cast(pa.decimal128(22, 3)),
            "w": pa.array(table["w"], pa.float64()),
        }
    )
    path = folder / FACTS / f"{number}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(columns, path)


def _write(path: Path, columns: dict[str, list[object]], types: dict[str, pa.DataType]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({name: pa.array(values, types[name]) for name, values in columns.items()}), path)


@dataclass(frozen=True)
class _Shape:
    """What a view is made of; queries take parts of it."""

    joined: bool
    keys: tuple[str, ...]
    measures: tuple[str, ...]
    conditions: tuple[str, ...]


def pairs(seed: int, queries: int) -> Pairs:
    chance = random.Random(seed)
    joined = chance.random() < 0.5
    keys = _some(chance, _KEYS + (_SHOP_KEYS if joined else ()), 1, 4)
    grouped = chance.random() < 0.85
    measures = _some(chance, _MEASURES, 2, 6) if grouped else ()
    conditions = _some(chance, _CONDITIONS + (_SHOP_CONDITIONS if joined else ()), 0, 2)
    shape = _Shape(joined, keys, measures, conditions)
    columns = [*keys, *measures] if grouped else list(_some(chance, ("a", "b", "d", "k", "x", "p", "w"), 3, 6))
    text = _select(chance, columns, [], joined, False, conditions, keys if grouped else ())
    return Pairs(text, tuple(_query(random.Random(f"{seed} {number}"), shape, columns) for number in range(queries)))


def _query(chance: random.Random, shape: _Shape, columns: list[str]) -> str:
    """Mostly what the view may answer: fewer keys, fewer measures, the same conditions and some more."""
    near = chance.random() < 0.85
    keys = list(_some(chance, shape.keys, 0, len(shape.keys)))
    measures = list(_some(chance, shape.measures, 1, 3)) if shape.measures else []
    conditions = [chance.choice((one, one, *_NARROWER.get(one, ()))) for one in shape.conditions]
    if chance.random() < 0.5:
        conditions += [_about(chance, key) for key in _some(chance, shape.keys, 1, 2)]
    if chance.random() < 0.2 and keys:
        measures.append(f"count(DISTINCT {chance.choice(shape.keys)})")
    if not near:
        keys += _some(chance, _KEYS, 0, 1)
        measures += _some(chance, _MEASURES, 0, 1)
        conditions = list(_some(chance, _CONDITIONS, 0, 2))
    back = shape.joined and chance.random() < 0.25
    if back:
        keys.append("label")
    if not shape.measures:
        wanted = list(_some(chance, tuple(columns), 1, len(columns)))
        conditions = [*shape.conditions, *(_about(chance, one) for one in _some(chance, tuple(wanted), 0, 2))]
        if chance.random() < 0.4:
            return _select(chance, wanted, [], shape.joined, back, conditions, ())
        keys, measures = wanted[:2], [f"max({one})" for one in wanted[2:]] + ["count(*)"]
    having = f"count(*) > {chance.randrange(4)}" if keys and chance.random() < 0.3 else ""
    text = _select(
        chance, [*keys, *measures] or ["count(*)"], [having] if having else [], shape.joined, back, conditions, keys
    )
    if keys and chance.random() < 0.2:
        # All columns, so that rows which are alike are the only ones that may change places.
        order = ", ".join(str(place + 1) for place in range(len(keys) + len(measures)))
        text += f" ORDER BY {order} LIMIT {chance.randrange(1, 9)}"
    return text


def _about(chance: random.Random, key: str) -> str:
    if key.startswith(("count", "sum", "min", "max", "avg")):
        return "true"
    conditions = (
        "({}) IS NOT NULL",
        "({}) IS NULL",
        "({0}) = ({0})",
        "CAST({} AS STRING) > '2'",
        "NOT (({}) <=> NULL)",
    )
    return chance.choice(conditions).format(key)


def _select(
    chance: random.Random,
    columns: list[str] | tuple[str, ...],
    having: list[str],
    joined: bool,
    back: bool,
    conditions: list[str] | tuple[str, ...],
    keys: list[str] | tuple[str, ...],
) -> str:
    named = ", ".join(f"{column} AS c{place}" for place, column in enumerate(columns))
    tables, ties = [FACTS], []
    if joined:
        tables.append(SHOPS)
        ties.append("k = id")
    if back:
        tables.append(LANDS)
        ties.append("land = nr")
    chance.shuffle(tables)
    where = [*ties, *(f"({one})" for one in conditions)]
    text = f"SELECT {named} FROM {', '.join(tables)}"
    text += f" WHERE {' AND '.join(where)}" if where else ""
    text += f" GROUP BY {', '.join(dict.fromkeys(keys))}" if keys else ""
    return text + (f" HAVING {having[0]}" if having else "")


def _some(chance: random.Random, values: tuple[str, ...], least: int, most: int) -> tuple[str, ...]:
    return tuple(chance.sample(values, min(len(values), chance.randint(least, max(least, most)))))
