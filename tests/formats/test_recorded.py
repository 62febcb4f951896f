"""Only options that change values get into a log: others are ignored, or stand there as a digest."""

import json
import logging

import pytest

from grebe.formats import Column, Reading
from grebe.formats.csv import CSV
from grebe.formats.options import is_digest
from grebe.formats.parquet import PARQUET
from grebe.log.codec import decode_entry, decode_state, encode_entry, encode_state
from grebe.log.entry import Entry, IndexSpec, TableCreated, TableInfo, Writer
from grebe.log.states import TableState

CANARY = "wJalrXUtnFEMI"
IGNORED = (
    "fs.s3a.secret.key",
    "fs.s3a.session.token",
    "FS.AZURE.ACCOUNT.KEY.x.dfs.core.windows.net",
    "parquet.encryption.key.list",
    "spark.hadoop.fs.s3a.access.key",
    "google.cloud.auth.service.account.private.key",
    "password",
    "myStore.secretKey",
    "api_key",
)


def _reading(**options: str) -> Reading:
    return Reading.of("csv", CSV.options.of_reading(options), [Column("a", "string")], "UTC", local_times=True)


@pytest.mark.parametrize("name", IGNORED)
def test_credentials_are_no_part_of_a_reading(name: str) -> None:
    assert _reading(**{name: CANARY}) == _reading()
    assert PARQUET.options.of_reading({name: CANARY}) == PARQUET.options.of_reading({})


def test_an_unknown_option_tells_readings_apart_without_its_value() -> None:
    one, same, other = _reading(vendorMode=CANARY), _reading(VENDORMODE=CANARY), _reading(vendorMode="x")
    assert one == same
    assert len({one.digest(), other.digest(), _reading().digest()}) == 3
    assert not one.agrees_on(other, ["a"])
    assert not one.agrees_on(_reading(), ["a"])
    assert CANARY not in f"{one} {json.dumps(one.to_dict())}"
    assert is_digest(one.option("vendormode"))
    # A reading that was recorded can be completed again.
    assert CSV.options.of_reading({**dict(one.options), "header": "true"})["vendormode"] == one.option("vendormode")


def test_options_that_change_values_stand_as_they_are() -> None:
    assert dict(_reading(sep="|", nullValue="none").options).items() >= {("sep", "|"), ("nullvalue", "none")}
    assert PARQUET.options.recorded({"spark.sql.parquet.binaryAsString": "true"}) == {
        "spark.sql.parquet.binaryAsString": "true"
    }


def _written_before() -> bytes:
    """An entry as the first release wrote it: with every option that a reader was given."""
    options = {**dict(_reading(sep="|").options), "vendormode": CANARY, "fs.s3a.secret.key": CANARY}
    reading = {**_reading().to_dict(), "options": options}
    writer = Writer("host", 1, "now", "me")
    plain = encode_entry(Entry(1, "x", "", "create", 0, writer, (TableCreated(TableInfo("file:///t", "plain")),)))[0]
    line = json.loads(plain.partition(b"\n")[0])
    line["changes"][0]["table"]["reading"] = reading
    return _sealed(line)


def _sealed(line: object) -> bytes:
    import hashlib

    data = json.dumps(line).encode()
    return data + b'\n{"sha256":"%b"}\n' % hashlib.sha256(data).hexdigest().encode()


def test_an_old_log_opens_and_its_secrets_are_neither_shown_nor_written_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    data = _written_before()
    assert CANARY.encode() in data
    entry, _ = decode_entry(data, "entry 1")
    created = entry.changes[0]
    assert isinstance(created, TableCreated)
    assert CANARY not in repr(entry)
    reading = Reading.from_dict(created.table.reading)
    assert reading == _reading(sep="|", vendormode=CANARY)
    assert CANARY.encode() not in encode_entry(entry)[0]
    packed = encode_state(1, "x", TableState(table=created.table))
    assert decode_state(packed, "state")[2].table == created.table
    assert CANARY not in repr(decode_state(packed, "state"))
    assert CANARY not in caplog.text


def test_the_readings_within_properties_are_cleaned_too() -> None:
    reading = {**_reading().to_dict(), "options": {"sep": "|", "vendormode": CANARY, "fs.s3a.secret.key": CANARY}}
    properties = {"reading": reading, "definition": {"bases": [{"uri": "x", "reading": reading, "files": 3}]}, "k": [1]}
    spec = IndexSpec("view", ("a",), properties)
    assert CANARY not in repr(spec)
    assert spec.properties["k"] is properties["k"]
    assert spec.properties["definition"]["bases"][0]["reading"]["options"]["sep"] == "|"
    assert IndexSpec("view", ("a",), spec.properties).properties is spec.properties
