"""Rows that are pinned: answers are those without a pin, whatever is asked, and however the files change."""

import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

import grebe
from grebe.errors import GrebeError, InvalidConfig, Unsupported
from grebe.lookup.pin import rows as pinned_rows
from grebe.predicate.bind import bind
from grebe.predicate.evaluate import matches
from grebe.predicate.normalise import normalise
from grebe.predicate.parse import parse
from grebe.predicate.tree import And, Column, Compare, In, Literal, Predicate
from grebe.predicate.types import VOID
from grebe.session.table import Table
from tests.predicate.generators import FIELDS, column_of, literal, predicates

ROWS = 60
NOTHING = Literal(None, VOID)
LAYOUTS = {
    "as the files": (),
    "text": ("s = 'a'", "s = 'b' AND d < 1"),
    "doubles": ("d = 1.0", "f = 1.0"),
    "decimals": ("dec_9_2 = 1", "dec_38_18 = 1", "bin = X'61'"),
    "times": (
        "ts = TIMESTAMP '2020-01-01 00:00:00'",
        "tn = TIMESTAMP_NTZ '2020-01-01 00:00:00'",
        "dt = DATE '2020-01-01'",
    ),
    "fields": ("st.in.s = 'a'", "st.a IN (1, 2)", "st.in.dec = 1"),
    "boxes": ("bigint > 0 AND d < 1 AND s > 'a'", "d > 0", "bigint = 3"),
}
PINNED = {"all": None, "some": "bigint >= 0", "known": "s IS NOT NULL AND d < 1.0"}


def made(number: int) -> pa.Table:
    """One file: values of all types from pools of edges, a sixth of them NULL."""
    chance = random.Random(number)

    def values(kind_pool: tuple[object, list[object]]) -> pa.Array:
        kind, pool = kind_pool
        return column_of(kind, [chance.choice(pool) if chance.random() < 0.85 else None for _ in range(ROWS)])  # type: ignore[arg-type]

    columns = {one.path[0]: values((one.kind, one.pool)) for one in FIELDS if len(one.path) == 1}
    nested = {one.path[-1]: values((one.kind, one.pool)) for one in FIELDS if len(one.path) > 1}
    holes = pa.array([chance.random() < 0.2 for _ in range(ROWS)])
    inner = pa.StructArray.from_arrays([nested["s"], nested["dec"]], ["s", "dec"], mask=holes)
    columns["st"] = pa.StructArray.from_arrays([nested["a"], inner], ["a", "in"])
    return pa.table({**columns, "number": pa.array(np.arange(ROWS) + number * ROWS)})


class Files:
    """A folder of such files, and their rows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.parts: dict[int, pa.Table] = {}
        folder.mkdir()

    def write(self, *numbers: int) -> None:
        for number in numbers:
            self.parts[number] = made(number)
            pq.write_table(self.parts[number], self.folder / f"{number}.parquet", row_group_size=25)

    def remove(self, number: int) -> None:
        (self.folder / f"{number}.parquet").unlink()
        del self.parts[number]

    def expected(self, predicate: str | Predicate) -> pa.Table:
        table = pa.concat_tables(self.parts.values())
        given = parse(predicate) if isinstance(predicate, str) else predicate
        return table.filter(matches(table, normalise(bind(given, table.schema))))


def numbers(rows: pa.Table) -> list[int]:
    return sorted(rows["number"].to_pylist())


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setattr(pinned_rows, "BLOCK_ROWS", 4)
    monkeypatch.setenv("GREBE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    made = Files(tmp_path / "t")
    made.write(0, 1, 2, 3)
    return made


def assert_alike(table: Table, files: Files, predicate: Predicate) -> None:
    try:
        wanted = numbers(files.expected(predicate))
    except GrebeError:
        return  # what does not fit some row may be told or not, as Spark may
    assert numbers(table.scan(predicate, columns=["number"])) == wanted
    assert table.count(predicate) == len(wanted)
    assert table.exists(predicate) == bool(wanted)
    if not wanted:
        return
    having = {
        f"{file}.parquet"
        for file, part in files.parts.items()
        if not set(wanted).isdisjoint(part["number"].to_pylist())
    }
    assert having <= {one.path.rpartition("/")[2] for one in table.files(predicate).files}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_answers_are_those_without_a_pin_while_files_come_and_go(layout: str, files: Files) -> None:
    table = grebe.open(str(files.folder))
    some = random.Random(layout).choice(list(PINNED))
    for condition in dict.fromkeys((PINNED[some], None)):
        table.pin(condition, queries=LAYOUTS[layout])
    conditions = [parse(one) for one in PINNED.values() if one]

    @settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
    @given(predicates(), predicates())
    def ask(one: Predicate, other: Predicate) -> None:
        for predicate in (And((one, conditions[0])), And((other, conditions[1])), other):
            assert_alike(table, files, predicate)

    ask()
    files.write(7)
    files.remove(1)
    shutil.copy(files.folder / "2.parquet", files.folder / "8.parquet")
    files.parts[8] = files.parts[2]
    files.parts[3] = made(9)
    pq.write_table(files.parts[3], files.folder / "3.parquet")
    table.reload()
    ask()
    assert all(one.hits > 20 for one in table.pinned)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_value_is_found_by_its_key(layout: str, files: Files) -> None:
    table = grebe.open(str(files.folder))
    table.pin(queries=LAYOUTS[layout])
    before = table.counts()
    for field in FIELDS:
        items = [literal(field.kind, value) for value in field.pool]
        column = Column(field.path)
        single = [Compare("=", column, item) for item in items]
        for asked in (*single, Compare("<=>", column, NOTHING), In(column, (*items[::2], NOTHING))):
            assert numbers(table.scan(asked, ["number"])) == numbers(files.expected(asked))
    assert table.counts() == before, "no file was read"


def test_rows_are_the_same_to_the_bit(files: Files) -> None:
    table = grebe.open(str(files.folder))
    plain = table.scan("number >= 0").sort_by("number")
    with table.pin(queries=["d = 1.0"]):
        pinned = table.scan("number >= 0").sort_by("number")
    assert pinned.schema == plain.schema
    for name in set(plain.column_names) - {"dt", "ts", "tn"}:  # Python has no such days
        assert repr(pinned[name].to_pylist()) == repr(plain[name].to_pylist())
    assert pinned.select(["dt", "ts", "tn"]).equals(plain.select(["dt", "ts", "tn"]))


def test_what_is_not_pinned_is_read(files: Files) -> None:
    table = grebe.open(str(files.folder))
    with table.pin("bigint >= 0", ["number"]) as pin:
        assert pin.info.columns == ("number", "bigint")
        for predicate in ("bigint >= -1", "number = 3", "s = 'a' AND bigint > 5"):
            assert numbers(table.scan(predicate, ["number"])) == numbers(files.expected(predicate))
        table.scan("bigint > 5", ["s"])
        assert pin.info.hits == 0
        assert numbers(table.scan("bigint > 5", ["number"])) == numbers(files.expected("bigint > 5"))
        assert pin.info.hits == 1
    assert table.pinned == []


def test_two_pins_serve_each_its_own(files: Files) -> None:
    table = grebe.open(str(files.folder))
    table.pin("bigint >= 0")
    files.write(11)
    table.reload()
    table.pin("s IS NOT NULL")
    before = table.counts()
    asked = "bigint >= 0 AND s = 'a'"
    assert numbers(table.scan(asked)) == numbers(files.expected(asked))
    assert table.counts() == before, "the new file is known to the second"
    assert [one.hits for one in table.pinned] == [1, 1]
    assert numbers(table.scan("s = 'a'")) == numbers(files.expected("s = 'a'"))
    table.unpin()
    assert table.pinned == []
    assert numbers(table.scan(asked)) == numbers(files.expected(asked))


def test_more_than_the_memory_is_refused(files: Files) -> None:
    table = grebe.open(str(files.folder))
    with table.pin() as pin:
        needed = pin.info.bytes
    assert needed > 50_000
    for memory, predicate in ((1_000, None), (needed // 2, None), ("10KB", "number >= 0"), (0, "number = 1")):
        with pytest.raises(Unsupported, match="bytes") as refused:
            table.pin(predicate, memory=memory)
        assert refused.value.code == "UNSUPPORTED_PIN_MEMORY"
    assert table.pinned == []
    with pytest.raises(InvalidConfig, match="memory") as refused_text:
        table.pin(memory="much")
    assert refused_text.value.code == "INVALID_CONFIG_VALUE"
    assert table.pin("number < 30", memory=needed // 2).info.rows == 30


def test_the_size_that_is_needed_is_told_about_right(files: Files) -> None:
    table = grebe.open(str(files.folder))
    needed = table.pin().info.bytes
    with pytest.raises(Unsupported) as refused:
        table.pin(memory=2_000)
    told = int(str(refused.value).split("(")[1].split(" bytes")[0].replace(",", ""))
    assert needed / 2 < told < needed * 2


def test_no_file_is_left_behind(files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GREBE_CACHE", str(tmp_path / "cache"))
    table = grebe.open(str(files.folder))
    table.pin()
    assert list((tmp_path / "cache").rglob("*.*")) == []
    monkeypatch.setenv("GREBE_CACHE", str(files.folder / "0.parquet"))
    assert table.pin().info.rows == 4 * ROWS, "in plain memory, where there is no folder"


def test_a_table_read_otherwise_has_no_use_for_a_pin(files: Files) -> None:
    table = grebe.open(str(files.folder))
    table.pin()
    for number, part in files.parts.items():
        wider = part.set_column(part.schema.get_field_index("int"), "int", part["int"].cast(pa.int64()))
        files.parts[number] = wider
        pq.write_table(wider, files.folder / f"{number}.parquet")
    table.reload()
    assert numbers(table.scan("int = 1")) == numbers(files.expected("int = 1"))
    assert table.pinned[0].hits == 0


def test_places_are_found_in_pinned_rows(files: Files) -> None:
    table = grebe.open(str(files.folder))
    box, on = (-10.0, -2.0, 200.0, 3.0), ["bigint", "f"]
    without = numbers(table.within(box, on=on)), table.nearest(3, 1, 5, on, on=on)
    table.pin()
    before = table.counts()
    assert numbers(table.within(box, on=on)) == without[0] != []
    distances = [
        [(row["bigint"] - 3) ** 2 + (row["f"] - 1) ** 2 for row in rows.to_pylist()]
        for rows in (without[1], table.nearest(3, 1, 5, on, on=on))
    ]
    assert distances[0] == distances[1]
    assert table.counts() == before


def test_what_was_asked_decides_the_order_of_rows(files: Files) -> None:
    table = grebe.open(str(files.folder))
    for _ in range(3):
        table.get("s", "a")
    with table.pin() as pin:
        assert table.explain("s = 'a'").pinned == 4
        assert "4 files are pinned" in str(table.explain("s = 'a'"))
        assert "hits" in repr(pin)
        assert "hits" in table.pinned._repr_html_()
    assert table.explain("s = 'a'").pinned == 0


def test_what_only_spark_knows_is_told_as_ever(files: Files) -> None:
    table = grebe.open(str(files.folder))
    table.pin()
    assert len(table.files("soundex(s) = 'A000'").files) == 4
    with pytest.raises(Unsupported):
        table.scan("soundex(s) = 'A000'")
    assert len(table.files("CAST(s AS int) = 1").files) == 4
    with pytest.raises(grebe.errors.InvalidPredicate):
        table.scan("CAST(s AS int) = 1")


def test_no_rows_and_no_files_can_be_pinned(tmp_path: Path, files: Files) -> None:
    table = grebe.open(str(files.folder))
    with table.pin("number < 0"):
        assert table.count("number < 0") == 0
        assert table.scan("number < -1").num_rows == 0
        assert table.pinned[0].rows == 0
        assert table.pinned[0].hits == 2


def test_threads_share_pins_that_come_and_go(files: Files) -> None:
    table = grebe.open(str(files.folder))
    wanted = numbers(files.expected("bigint > 0"))

    def ask(number: int) -> bool:
        if number % 10 == 0:
            with table.pin("bigint > 0"):
                return numbers(table.scan("bigint > 0")) == wanted
        return numbers(table.scan("bigint > 0")) == wanted

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(60)))
    assert table.pinned == []
