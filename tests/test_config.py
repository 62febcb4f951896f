"""The settings: what they accept, and which place wins."""

import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grebe.clock import SimulatedClock
from grebe.config import Config, describe
from grebe.errors import InvalidConfig
from grebe.log.commit import Log
from grebe.log.entry import TableInfo
from grebe.maintenance.vacuum import retention_of, vacuum
from grebe.setting_values import LONGEST_DAYS, LONGEST_SECONDS, parse_bytes
from grebe.store.memory import MemoryStore

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "enabled": st.booleans(),
    "hybrid": st.booleans(),
    "hybrid_max_appended": st.floats(0, 1),
    "hybrid_max_deleted": st.floats(0, 1),
    "consistency": st.sampled_from(["current", "snapshot"]),
    "identity": st.sampled_from(["stat", "footer", "times"]),
    "location": st.none() | st.sampled_from(["s3://lake/indexes", "some folder", "a=b/ü"]),
    "allowed_roots": st.lists(st.sampled_from(["s3://lake", "/data", "file:///a b"]), max_size=2).map(tuple),
    "cache_bytes": st.integers(0, 2**50),
    "verify_index_data": st.booleans(),
    "guard_decoders": st.booleans(),
    "vacuum_retention_seconds": st.floats(0, 1e9),
    "vacuum_retention_check": st.booleans(),
    "log_retention_days": st.floats(1e-3, 1e6),
    "keep_versions": st.integers(0, 1000),
    "keep_bytes": st.none() | st.integers(0, 2**50),
    "heartbeat_seconds": st.floats(0.001, 1e6),
    "max_age_seconds": st.none() | st.floats(0, 1e6),
    "time_zone": st.none() | st.sampled_from(["UTC", "Europe/Berlin", "+02:00", "-18:00", "GMT+8", "UTC-03:30"]),
    "price_thousand_requests": st.floats(0, 1e6),
    "price_gigabyte": st.floats(0, 1e6),
    "price_core_hour": st.floats(0, 1e6),
    "record_workload": st.booleans(),
    "workload_literals": st.sampled_from(["plain", "hashed"]),
    "workload_days": st.floats(0.001, 1e6),
    "workload_bytes": st.integers(0, 2**50),
}
PLACES = ["toml", "env", "spark", "config", "overrides"]  # the lowest rank first
assignments = st.fixed_dictionaries({}, optional=VALUES)


def written(value: object) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(value)


def as_text(settings: Mapping[str, object]) -> dict[str, str]:
    return {name: written(value) for name, value in settings.items()}


def as_toml(settings: Mapping[str, object]) -> str:
    def literal(value: object) -> str:
        return str(value).lower() if isinstance(value, bool) else f'"{written(value)}"'

    return "".join(f"{name} = {literal(value)}\n" for name, value in settings.items())


def load(places: Mapping[str, Mapping[str, Any]], folder: Path) -> Config:
    toml = folder / "grebe.toml"
    toml.write_text(as_toml(places.get("toml", {})), encoding="utf-8")
    return Config.load(
        places.get("overrides"),
        config=Config(**places.get("config", {})),
        spark_conf={f"spark.grebe.{name}": text for name, text in as_text(places.get("spark", {})).items()},
        env={f"GREBE_{name.upper()}": text for name, text in as_text(places.get("env", {})).items()},
        toml_path=toml,
    )


def test_every_setting_is_generated_here() -> None:
    assert set(VALUES) == {name for name, _, _ in describe()}


def test_the_defaults_are_the_documented_ones() -> None:
    assert Config() == Config(
        enabled=True,
        hybrid=True,
        hybrid_max_appended=0.3,
        hybrid_max_deleted=0.2,
        consistency="current",
        identity="stat",
        location=None,
        cache_bytes=256 * 1024 * 1024,
        verify_index_data=True,
        guard_decoders=True,
        vacuum_retention_seconds=86_400,
        vacuum_retention_check=True,
        log_retention_days=30,
        keep_versions=1,
        keep_bytes=None,
        heartbeat_seconds=60,
        max_age_seconds=None,
        time_zone=None,
        price_thousand_requests=0.0004,
        price_gigabyte=0.0,
        price_core_hour=0.05,
        record_workload=False,
        workload_literals="plain",
        workload_days=90,
        workload_bytes=64 * 1024 * 1024,
    )


@given(st.sampled_from(PLACES), assignments)
def test_every_place_takes_every_setting(
    tmp_path_factory: pytest.TempPathFactory, place: str, settings: dict[str, Any]
) -> None:
    assert load({place: settings}, tmp_path_factory.getbasetemp()) == Config(**settings)


@given(st.dictionaries(st.sampled_from(PLACES), assignments))
def test_the_place_of_the_highest_rank_wins_setting_by_setting(
    tmp_path_factory: pytest.TempPathFactory, places: dict[str, dict[str, Any]]
) -> None:
    expected: dict[str, Any] = {}
    for place in PLACES:
        # An argument that is None was not given; in every other place None can be said.
        named = places.get(place, {})
        expected |= {k: v for k, v in named.items() if not (place == "overrides" and v is None)}
    assert load(places, tmp_path_factory.getbasetemp()) == Config(**expected)


def test_a_default_said_in_code_outranks_the_environment() -> None:
    env = {"GREBE_ENABLED": "false", "GREBE_HYBRID": "false"}
    config = Config.load(config=Config(enabled=True), env=env)
    assert config.enabled
    assert not config.hybrid


def test_an_empty_variable_counts_as_not_set() -> None:
    assert Config.load(env={"GREBE_LOCATION": ""}).location is None


def test_what_is_no_setting_of_ours_is_left_alone() -> None:
    env = {"HOME": "x", "GREBE_CACHE": "where downloads go"}
    assert Config.load(spark_conf={"spark.sql.shuffle.partitions": "4"}, env=env) == Config()


def test_a_config_survives_pickling_with_what_was_given() -> None:
    config = pickle.loads(pickle.dumps(Config(hybrid=True, cache_bytes=1)))
    assert config == Config(cache_bytes=1)
    assert config.given == {"cache_bytes": 1, "hybrid": True}


def test_the_file_is_found_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "grebe.toml").write_text('cache_bytes = "1MB"\n')
    monkeypatch.chdir(tmp_path)
    assert Config.load(env={}).cache_bytes == 1024 * 1024


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("enabled", "maybe"),
        ("enabled", 2),
        ("keep_versions", -1),
        ("keep_versions", 1.5),
        ("keep_versions", "many"),
        ("keep_bytes", "much"),
        ("hybrid_max_appended", 1.01),
        ("hybrid_max_appended", -0.1),
        ("hybrid_max_deleted", "nan"),
        ("consistency", "eventual"),
        ("identity", "inode"),
        ("workload_literals", "none"),
        ("workload_days", 0),
        ("location", " "),
        ("location", 7),
        ("cache_bytes", "12 parsecs"),
        ("cache_bytes", -1),
        ("cache_bytes", True),
        ("vacuum_retention_seconds", -1),
        ("vacuum_retention_seconds", "inf"),
        ("heartbeat_seconds", 0),
        ("max_age_seconds", "soon"),
        ("time_zone", "Middle/Earth"),
        ("time_zone", "../etc/passwd"),
        ("time_zone", "+19:00"),
        ("record_workload", None),
    ],
)
def test_a_bad_value_is_refused_with_its_place_and_what_to_give(setting: str, value: object) -> None:
    with pytest.raises(InvalidConfig, match=rf"grebe\.Config: {setting} = .* is .*\. Give ") as caught:
        Config(**{setting: value})  # type: ignore[arg-type]  # wrong on purpose
    assert caught.value.code == "INVALID_CONFIG_VALUE"
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("cache_bytes", "9" * 400 + "p"),
        ("cache_bytes", "9" * 4000),
        ("keep_bytes", 2**63),
        ("workload_bytes", "8192 PB"),
        ("keep_bytes", 10**5000),
        ("heartbeat_seconds", 10**400),
        ("max_age_seconds", "9" * 400),
        ("vacuum_retention_seconds", 1e308),
        ("vacuum_retention_seconds", 3.2e9),
        ("log_retention_days", 1e307),
        ("workload_days", 1_000_001),
        ("keep_versions", 1e300),
        ("price_core_hour", 10**400),
        ("location", "a\0b"),
        ("location", "\ud800"),
        ("allowed_roots", "/lake,a\0b"),
        ("allowed_roots", ("\ud800",)),
    ],
    ids=lambda value: str(value)[:20] if not isinstance(value, int) else "number",
)
def test_a_value_too_large_for_whoever_works_with_it_is_refused(setting: str, value: object) -> None:
    with pytest.raises(InvalidConfig, match=rf"grebe\.Config: {setting} = .* is .*\. Give ") as caught:
        Config(**{setting: value})  # type: ignore[arg-type]  # wrong on purpose
    assert caught.value.code == "INVALID_CONFIG_VALUE"
    assert len(str(caught.value)) < 500


def test_the_longest_spans_that_can_be_set_can_be_reckoned_with() -> None:
    log = Log(MemoryStore("log", SimulatedClock()), SimulatedClock()).create(TableInfo("file:///t", "plain"))
    longest = Config(vacuum_retention_seconds=LONGEST_SECONDS, log_retention_days=LONGEST_DAYS)
    assert vacuum(log, limits=retention_of(longest)).objects == 0


@pytest.mark.parametrize(
    "setting",
    [
        {"location": "s3://k:CANARY@b/x"},
        {"location": "s3:/k:CANARY@b/x"},
        {"allowed_roots": ["s3://k:CANARY@b/x?sig=CANARY"]},
        {"allowed_roots": ("/data", "gs://b/x?sig=CANARY")},
        {"allowed_roots": "/data, https://u:CANARY@h/x"},
        {"allowed_roots": ["s3://k:CANARY@b/x", 5]},
    ],
)
def test_credentials_in_a_place_are_refused_and_not_shown(setting: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfig) as refused:
        Config(**setting)
    assert refused.value.code == "INVALID_CONFIG_CREDENTIALS_IN_URI"
    assert "CANARY" not in "".join(traceback.format_exception(refused.value))


@pytest.mark.parametrize(
    ("place", "named"),
    [
        ({"env": {"GREBE_HEARTBEAT_SECONDS": "x"}}, r"the environment \(GREBE_HEARTBEAT_SECONDS\)"),
        ({"spark_conf": {"spark.grebe.heartbeat_seconds": "x"}}, r"Spark \(spark\.grebe\.heartbeat_seconds\)"),
        ({"overrides": {"heartbeat_seconds": "x"}}, "the call"),
    ],
)
def test_a_bad_value_names_the_place_it_came_from(place: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidConfig, match=named):
        Config.load(**{"env": {}, **place})


@pytest.mark.parametrize(
    "load_unknown",
    [
        lambda: Config(cache_byte=1),  # type: ignore[call-arg]  # wrong on purpose
        lambda: Config.load(overrides={"cache_byte": 1}),
        lambda: Config.load(spark_conf={"spark.grebe.cache_byte": "1"}),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_one(load_unknown: Any) -> None:
    with pytest.raises(InvalidConfig, match=r"no setting 'cache_byte'\. Did you mean 'cache_bytes'") as caught:
        load_unknown()
    assert caught.value.code == "INVALID_CONFIG_NAME"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"hybrid = ", "INVALID_CONFIG_FILE"),
        (b"[hybrid]\nx = 1", "INVALID_CONFIG_VALUE"),
        (b"\xff\xfe", "INVALID_CONFIG_FILE"),
        (b"nonsense = 1", "INVALID_CONFIG_NAME"),
        (b"keep_versions = " + b"9" * 5000, "INVALID_CONFIG_FILE"),
        (b"keep_versions = " + b"9" * 400, "INVALID_CONFIG_VALUE"),
        (b"heartbeat_seconds = " + b"9" * 400, "INVALID_CONFIG_VALUE"),
        (b"hybrid = " + b"[" * 3000 + b"]" * 3000, "INVALID_CONFIG_FILE"),
    ],
)
def test_a_bad_file_is_refused_by_its_name(tmp_path: Path, content: bytes, code: str) -> None:
    path = tmp_path / "grebe.toml"
    path.write_bytes(content)
    with pytest.raises(InvalidConfig, match=r"grebe\.toml") as refused:
        Config.load(env={}, toml_path=path)
    assert refused.value.code == code


def test_a_file_that_was_named_but_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match=r"\[INVALID_CONFIG_FILE\].*none\.toml cannot be read"):
        Config.load(env={}, toml_path=tmp_path / "none.toml")


@given(
    st.integers(0, 2**12), st.sampled_from(["", "k", "m", "g", "t", "p"]), st.sampled_from(["", "b", "B", "ib", "iB"])
)
def test_sizes_are_powers_of_1024_in_any_spelling(count: int, unit: str, rest: str) -> None:
    expected = count * 1024 ** ["", "k", "m", "g", "t", "p"].index(unit)
    rest = rest if unit else rest.removeprefix("i")
    assert parse_bytes(f"{count}{unit}{rest}") == expected
    assert parse_bytes(f" {count} {unit.upper()}{rest} ") == expected


def test_half_a_gigabyte_is_a_size() -> None:
    assert parse_bytes("0.5 GB") == 512 * 1024 * 1024


def test_an_unknown_variable_of_the_environment_is_one_warning_with_the_nearest_name(tmp_path: Path) -> None:
    script = "import grebe; grebe.Config.load(); grebe.Config.load(); print(grebe.Config.load().cache_bytes)"
    environment = {
        **os.environ,
        "GREBE_CACHE_BYTE": "1",
        "GREBE_HOME_OF_ANOTHER_PROGRAM": "x",
        "GREBE_CACHE_BYTES": "7",
    }
    ran = subprocess.run(
        [sys.executable, "-c", script], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ran.stdout == "7\n"
    assert ran.stderr.count("UserWarning") == 2
    assert "GREBE_CACHE_BYTE in the environment is no setting of Grebe. Did you mean 'cache_bytes'?" in ran.stderr
    assert "GREBE_HOME_OF_ANOTHER_PROGRAM" in ran.stderr


def test_a_former_name_of_a_setting_still_works_in_every_place(tmp_path: Path) -> None:
    toml = tmp_path / "grebe.toml"
    toml.write_text("micd_seconds = 7200")
    none = tmp_path / "none.toml"
    none.write_text("")
    with pytest.warns(DeprecationWarning, match="micd_seconds is called vacuum_retention_seconds now"):
        made = [
            Config(micd_seconds=7200),
            Config.load(config=Config(micd_seconds=7200), env={}, toml_path=none),
            Config.load({"micd_seconds": 7200}, env={}, toml_path=none),
            Config.load(spark_conf={"spark.grebe.micd_seconds": "7200"}, env={}, toml_path=none),
            Config.load(env={"GREBE_MICD_SECONDS": "7200"}, toml_path=none),
            Config.load(env={}, toml_path=toml),
        ]
    assert {config.vacuum_retention_seconds for config in made} == {7200.0}
    assert {config.micd_seconds for config in made} == {7200.0}  # type: ignore[attr-defined]  # the former name
    assert all(config.given == {"vacuum_retention_seconds": 7200.0} for config in made)


def test_the_rank_of_a_place_holds_whichever_name_it_uses(tmp_path: Path) -> None:
    toml = tmp_path / "grebe.toml"
    toml.write_text("vacuum_retention_seconds = 7200")
    with pytest.warns(DeprecationWarning, match="micd_seconds"):
        assert Config.load(env={"GREBE_MICD_SECONDS": "0"}, toml_path=toml).vacuum_retention_seconds == 0


def test_two_names_of_one_setting_with_two_values_are_refused() -> None:
    with pytest.raises(InvalidConfig, match="the same setting"):
        Config(micd_seconds=1, vacuum_retention_seconds=2)


def test_places_from_home_are_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/anna")
    config = Config(location="~/indexes", allowed_roots=("~/lake", "s3://b/~x"))
    assert (config.location, config.allowed_roots) == ("/anna/indexes", ("/anna/lake", "s3://b/~x"))
