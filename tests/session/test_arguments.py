"""Wrong use of `open` and of a table's verbs ends in an error of Grebe, never in one of Python or of a library."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from deltalake import write_deltalake
from pyarrow import orc

import grebe
from grebe.cli.main import main
from grebe.errors import GrebeError

SURROGATE = "x\udcff"


@pytest.fixture
def people(tmp_path: Path) -> Path:
    table = tmp_path / "people"
    table.mkdir()
    pq.write_table(pa.table({"id": [1, 2, 3], "name": ["ä", "b", None]}), table / "a.parquet")
    return table


@pytest.fixture
def versions(tmp_path: Path) -> Path:
    """A table of Delta Lake whose version n has n + 1 rows."""
    table = tmp_path / "versions"
    for number in range(2):
        write_deltalake(str(table), pa.table({"id": [number]}), mode="append")
    return table


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        ({"location": "a\0b"}, "INVALID_CONFIG_VALUE", "NUL"),
        ({"location": "\ud800"}, "INVALID_CONFIG_VALUE", "UTF-8"),
        ({"location": 5}, "INVALID_CONFIG_VALUE", "location=5 is no path"),
        ({"format": 5}, "UNSUPPORTED_FORMAT", "format=5"),
        ({"version": 1.0}, "UNSUPPORTED_VERSION", "version=1.0"),
        ({"version": True}, "UNSUPPORTED_VERSION", "version=True"),
        ({"timestamp": 1700000015}, "UNSUPPORTED_TIMESTAMP", "timestamp=1700000015"),
        ({"config": {"location": "x"}}, "INVALID_CONFIG_VALUE", r"dict; give settings as config=grebe\.Config"),
    ],
)
def test_an_argument_of_another_type_is_refused_by_its_name_and_value(
    versions: Path, given: dict[str, Any], code: str, says: str
) -> None:
    with pytest.raises(GrebeError, match=says) as refused:
        grebe.open(versions, **given)
    assert refused.value.code == code


@pytest.mark.parametrize("path", [None, 5, ["t"], "a\0b", "\ud800"])
def test_what_is_no_path_is_no_table(path: Any) -> None:
    with pytest.raises(grebe.TableNotFound, match=r"\[TABLE_NOT_FOUND_PATH\] path="):
        grebe.open(path)


def test_a_day_is_its_midnight_in_utc_and_a_version_any_whole_number(versions: Path) -> None:
    assert grebe.open(versions, version=np.int64(0)).count() == 1  # type: ignore[arg-type]  # a number of NumPy
    assert grebe.open(versions, timestamp=date(2999, 1, 1)).count() == 2
    with pytest.raises(grebe.TableNotFound) as by_day:
        grebe.open(versions, timestamp=date(2001, 1, 1))
    with pytest.raises(grebe.TableNotFound) as by_time:
        grebe.open(versions, timestamp=datetime(2001, 1, 1, tzinfo=UTC))
    assert str(by_day.value) == str(by_time.value)


ASKED: dict[str, Callable[[Any], object]] = {
    "get of a number": lambda table: table.get(5, 1),
    "get of bytes": lambda table: table.get(b"id", 1),
    "get of a tuple": lambda table: table.get(("id",), None),
    "get_many of a number": lambda table: table.get_many(5, [1]),
    "get_many of None": lambda table: table.get_many("id", None),
    "get_many of one value": lambda table: table.get_many("id", 5),
    "scan of None": lambda table: table.scan(None),
    "count of a number": lambda table: table.count(5),
    "columns of None": lambda table: table.get("id", 1, columns=[None]),
    "columns of a number": lambda table: table.scan("id = 1", columns=5),
    "columns of bytes": lambda table: table.scan("id = 1", columns=b"id"),
    "columns of a list": lambda table: table.nearest(0, 0, 1, columns=["id", ["name"]], on=["id", "id"]),
}


@pytest.mark.parametrize("asked", ASKED)
def test_a_question_of_wrong_types_is_an_invalid_predicate(people: Path, asked: str) -> None:
    with pytest.raises(grebe.InvalidPredicate, match="give"):
        ASKED[asked](grebe.open(people))


SOUGHT: dict[str, Callable[[grebe.Table], object]] = {
    "get": lambda table: table.get("name", SURROGATE),
    "get_many": lambda table: table.get_many("name", ["b", SURROGATE]),
    "=": lambda table: table.scan(grebe.col("name") == SURROGATE),
    "SQL": lambda table: table.count(f"name = '{SURROGATE}'"),
    "LIKE": lambda table: table.rows(f"name LIKE '%{SURROGATE}%'"),
    "files": lambda table: table.files(grebe.col("name") > SURROGATE),
    "find": lambda table: grebe.find([b"x", SURROGATE], table),
    "function": lambda table: table.exists(f"upper(name) = '{SURROGATE}'"),
}


BEYOND: dict[str, Callable[[grebe.Table], object]] = {
    "surrogate in a number": lambda table: table.get("id", SURROGATE),
    "surrogate among numbers": lambda table: table.get_many("id", [1, SURROGATE]),
    "day of the far future": lambda table: table.get("id", pa.scalar(3_000_000, pa.date32())),
    "moment of the far future": lambda table: table.get("id", pa.scalar(2**60, pa.timestamp("s"))),
    "moments of the far future": lambda table: table.get_many("id", pa.array([2**60], pa.timestamp("s", "UTC"))),
    "box": lambda table: table.within((10**400, 0, 1, 1), on=["id", "id"]),
    "point": lambda table: table.nearest(10**400, 0, 1, on=["id", "id"]),
    "exponent": lambda table: table.scan("id = 1e9999999999999999999999BD"),
    "exponent of a double": lambda table: table.scan("id = 1e9999999999999999999999D"),
}


@pytest.mark.parametrize("beyond", BEYOND)
def test_a_value_beyond_its_type_is_an_invalid_predicate(people: Path, beyond: str) -> None:
    with pytest.raises(grebe.InvalidPredicate):
        BEYOND[beyond](grebe.open(people))


def test_scalars_of_every_kind_are_looked_up(people: Path) -> None:
    table = grebe.open(people)
    assert table.get("id", pa.scalar(2, pa.int8())).to_pylist() == [{"id": 2, "name": "b"}]
    assert table.get("name", pa.scalar("b", pa.large_string())).num_rows == 1
    assert table.get("name", pa.array(["b"]).dictionary_encode()[0]).num_rows == 1
    assert table.get("id", pa.scalar(None, pa.int64())).num_rows == 0


@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_two_columns_of_one_name_are_refused(tmp_path: Path, format: str) -> None:
    table = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    if format == "parquet":
        pq.write_table(table, tmp_path / "a.parquet")
    else:
        orc.write_table(table, tmp_path / "a.orc")
    asks: list[Callable[[grebe.Table], object]] = [
        lambda one: one.scan("true"),
        lambda one: one.count(),
        lambda one: one.get("a", 1),
    ]
    for ask in asks:
        with pytest.raises(GrebeError, match="2 columns called a") as refused:
            ask(grebe.open(tmp_path))
        assert refused.value.code == "UNSUPPORTED_NAMES"


@pytest.mark.parametrize("content", [b"\n\n", b"\xef\xbb\xbf", b"\0\0\n"])
def test_a_table_without_columns_has_no_rows(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    table = grebe.open(tmp_path)
    assert (table.count(), table.exists("true"), table.scan("true").num_rows, table.files("true").uncovered) == (
        0,
        False,
        0,
        1,
    )


def test_rows_of_a_parquet_file_without_columns_are_counted(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2]}).select([]), tmp_path / "a.parquet")
    table = grebe.open(tmp_path)
    assert table.count() == pq.read_metadata(tmp_path / "a.parquet").num_rows == table.scan("true").num_rows


@pytest.mark.parametrize("sought", SOUGHT)
def test_a_text_that_no_file_can_hold_is_an_invalid_predicate(people: Path, sought: str) -> None:
    with pytest.raises(grebe.InvalidPredicate, match=r"\[INVALID_PREDICATE_VALUE\].*UTF-8"):
        SOUGHT[sought](grebe.open(people))


def test_the_command_line_refuses_a_value_that_is_no_utf8(people: Path) -> None:
    result = CliRunner().invoke(main, ["get", str(people), "name", "\udcff"])
    assert result.exit_code == 1
    assert "INVALID_PREDICATE_VALUE" in result.output


@pytest.mark.parametrize("ask", [lambda table: table.get(SURROGATE, 1), lambda table: table.index(SURROGATE)])
def test_a_message_that_quotes_what_is_no_unicode_can_be_written(
    people: Path, ask: Callable[[grebe.Table], object]
) -> None:
    with pytest.raises(GrebeError, match=r"x\\udcff") as refused:
        ask(grebe.open(people))
    assert str(refused.value).encode()


def test_names_of_columns_may_come_from_any_iterable(people: Path) -> None:
    table = grebe.open(people)
    assert table.get("id", 1, columns=("ID",)).column_names == ["id"]
    assert table.get_many("id", iter([1, 2]), columns=iter(["name"])).column_names == ["name"]  # type: ignore[arg-type]  # as documented for lists


def test_find_in_what_is_no_table_is_no_table() -> None:
    tables: Any = 5
    with pytest.raises(grebe.TableNotFound, match="path=5 is no path"):
        grebe.find(["a"], tables)
