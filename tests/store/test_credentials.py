"""Where credentials are taken from, and that none ever shows: in an error, its causes, a log line or a `repr`."""

import json
import logging
import pickle
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grebe.errors import GrebeError, InvalidConfig, StoreRefused
from grebe.store.aws import with_profile
from grebe.store.opening import open_store
from grebe.store.protocol import Store
from testbed.hdfs import HdfsServer
from testbed.proxy import FaultProxy, Step
from testbed.s3 import S3Server

CANARY = "CANARYcanary0123456789"
NOBODY = "http://127.0.0.1:9"

CALLS: list[Callable[[Store], object]] = [
    lambda store: store.get("object"),
    lambda store: store.get_range("object", 0, 1),
    lambda store: store.get_ranges("object", [(0, 1), (9_000_000, 1)]),
    lambda store: store.put("object", b"x"),
    lambda store: store.put_if_absent("object", b"x"),
    lambda store: store.delete("object"),
    lambda store: store.stat("object"),
    lambda store: list(store.list("folder")),
]


def everything_told(error: BaseException) -> str:
    """All that anybody could print of an error."""
    told = [*traceback.format_exception(error), repr(pickle.loads(pickle.dumps(error)))]
    chain: BaseException | None = error
    while chain is not None:
        told += [str(chain), repr(chain), repr(chain.args)]
        chain = chain.__cause__ or chain.__context__
    return "\n".join(told)


@pytest.fixture(autouse=True)
def logs_are_clean(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.DEBUG)
    yield
    assert CANARY not in caplog.text


def all_calls_fail_silently(store: Store) -> None:
    assert CANARY not in repr(store) + str(store) + store.uri
    for call in CALLS:
        with pytest.raises(GrebeError) as failed:
            call(store)
        assert CANARY not in everything_told(failed.value)


FAST = {"max_retries": "0", "timeout": "500ms", "allow_http": "true"}
UNREACHABLE = {
    "s3 key": ("s3://lake/x", {"access_key_id": CANARY, "secret_access_key": CANARY, "endpoint": NOBODY, **FAST}),
    "s3 session": (
        "s3://lake/x",
        {"access_key_id": "a", "secret_access_key": "b", "session_token": CANARY, "endpoint": NOBODY, **FAST},
    ),
    "azure key": (
        "az://lake/x",
        {"account_name": "a", "account_key": CANARY + "AA", "endpoint": NOBODY, **FAST},
    ),
    "azure sas": (
        "abfss://lake@account.dfs.core.windows.net/x",
        {"sas_key": f"sv=2024-01-01&sig={CANARY}%3D", "endpoint": NOBODY, **FAST},
    ),
    "azure secret": (
        "az://lake/x",
        {
            "account_name": "a",
            "client_id": "c",
            "client_secret": CANARY,
            "tenant_id": "t",
            "authority_host": NOBODY,
            "endpoint": NOBODY,
            **FAST,
        },
    ),
    "gcs token": ("gs://lake/x", {"bearer_token": CANARY, "base_url": NOBODY, **FAST}),
    "proxy": (
        "s3://lake/x",
        {
            "access_key_id": "a",
            "secret_access_key": "b",
            "endpoint": NOBODY,
            "proxy_url": f"http://user:{CANARY}@127.0.0.1:9",
            **FAST,
        },
    ),
    "hdfs": ("hdfs://127.0.0.1:9/x", {"some.password": CANARY, "dfs.client.failover.max.attempts": "1"}),
}


@pytest.mark.parametrize("name", UNREACHABLE)
def test_nothing_shows_when_nobody_answers(name: str) -> None:
    uri, options = UNREACHABLE[name]
    all_calls_fail_silently(open_store(uri, options))


@pytest.mark.xdist_group("s3")
def test_nothing_shows_when_the_secret_is_wrong(s3_server: S3Server) -> None:
    options = {**s3_server.storage_options, "secret_access_key": CANARY, "session_token": CANARY}
    all_calls_fail_silently(open_store(s3_server.uri("x"), options))


@pytest.mark.xdist_group("s3")
@pytest.mark.parametrize("fault", ["403 before", "503 before", "lost reply", "reset before", "slow reply"])
def test_nothing_shows_when_the_store_is_disturbed(s3_server: S3Server, proxy: FaultProxy, fault: str) -> None:
    proxy.plan([Step(fault, times=100)], slow=0.4)
    options = {
        **s3_server.storage_options,
        **FAST,
        "endpoint": proxy.endpoint,
        "session_token": CANARY,
        "timeout": "200ms",
    }
    all_calls_fail_silently(open_store(s3_server.uri("x"), options))


@pytest.mark.parametrize(
    ("uri", "options"),
    [
        ("s3://lake/x", {"allow_http": CANARY}),
        ("s3://lake/x", {"no_such_option": CANARY}),
        ("s3://lake/x", {"profile": "nobody", "endpoint": CANARY}),
        ("az://lake/x", {"account_name": "a", "account_key": f"{CANARY} is not base64!"}),
        ("az://lake/x", {"account_name": "a", "sas_key": CANARY}),
        ("gs://lake/x", {"service_account_key": json.dumps({"private_key": CANARY})}),
        ("gs://lake/x", {"service_account_key": CANARY}),
        (f"https://user:{CANARY}@example.org/x", {}),
    ],
)
def test_nothing_shows_when_a_store_cannot_be_opened(uri: str, options: dict[str, str]) -> None:
    with pytest.raises(GrebeError) as failed:
        open_store(uri, options)
    assert CANARY not in "\n".join(
        [*traceback.format_exception(failed.value), str(failed.value), repr(failed.value), repr(failed.value.__cause__)]
    )


@pytest.mark.xdist_group("hdfs")
def test_nothing_shows_when_hdfs_refuses(hdfs_server: HdfsServer) -> None:
    store = open_store(hdfs_server.uri("nowhere"), {"some.password": CANARY})
    with pytest.raises(GrebeError) as failed:
        store.get("object")
    assert CANARY not in everything_told(failed.value) + repr(store)


class TestProfiles:
    @pytest.fixture(autouse=True)
    def home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        import os

        for name in [name for name in os.environ if name.startswith("AWS_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("HOME", str(tmp_path))
        folder = tmp_path / ".aws"
        folder.mkdir()
        (folder / "credentials").write_text(
            "[default]\naws_access_key_id = DEFAULT\naws_secret_access_key = s1\n"
            "[work]\naws_access_key_id = WORK\naws_secret_access_key = s2\naws_session_token = t2\n"
        )
        (folder / "config").write_text(
            "[default]\nregion = eu-west-1\n[profile work]\nregion = eu-north-1\nendpoint_url = https://s3.example\n"
            "[profile single-sign-on]\nsso_start_url = https://sso.example\nregion = us-west-2\n"
        )
        return folder

    def test_the_default_profile_serves_those_who_give_nothing(self) -> None:
        assert with_profile({}) == (
            {"region": "eu-west-1", "aws_access_key_id": "DEFAULT", "aws_secret_access_key": "s1"},
            {},
        )

    @pytest.mark.parametrize("by_option", [True, False])
    def test_a_profile_is_named_by_option_or_environment(
        self, monkeypatch: pytest.MonkeyPatch, by_option: bool
    ) -> None:
        if not by_option:
            monkeypatch.setenv("AWS_PROFILE", "work")
        options, _ = with_profile({"profile": "work"} if by_option else {})
        assert options == {
            "region": "eu-north-1",
            "endpoint": "https://s3.example",
            "aws_access_key_id": "WORK",
            "aws_secret_access_key": "s2",
            "aws_session_token": "t2",
        }

    def test_options_and_environment_come_first(self, monkeypatch: pytest.MonkeyPatch) -> None:
        given = {"access_key_id": "mine", "secret_access_key": "s", "region": "here", "endpoint": "there"}
        assert with_profile(given) == (given, {})
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "environment")
        assert with_profile({"region": "here"}) == ({"region": "here"}, {})

    def test_a_profile_that_is_not_there_is_named(self) -> None:
        with pytest.raises(InvalidConfig, match=r"\[INVALID_CONFIG_AWS_PROFILE\].*nobody"):
            with_profile({"profile": "nobody"})

    def test_a_profile_that_needs_the_sdk_says_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        with pytest.raises(InvalidConfig, match=r"\[INVALID_CONFIG_AWS_PROFILE\].*sso_start_url.*boto3"):
            with_profile({"profile": "single-sign-on"})

    def test_a_broken_file_is_named_but_not_quoted(self, home: Path) -> None:
        (home / "credentials").write_text(f"aws_secret_access_key = {CANARY}\n")
        with pytest.raises(InvalidConfig, match=r"\[INVALID_CONFIG_AWS_PROFILE\].*credentials") as failed:
            with_profile({})
        assert CANARY not in "".join(traceback.format_exception(failed.value))

    def test_without_files_nothing_is_added(self, home: Path) -> None:
        (home / "credentials").unlink()
        (home / "config").unlink()
        assert with_profile({"region": "here"}) == ({"region": "here"}, {})

    @pytest.mark.xdist_group("s3")
    def test_a_store_opens_with_the_keys_of_a_profile(self, home: Path, s3_server: S3Server) -> None:
        (home / "credentials").write_text(
            f"[default]\naws_access_key_id = {s3_server.key}\naws_secret_access_key = {s3_server.secret}\n"
        )
        store = open_store(s3_server.uri("profile"), {"endpoint": s3_server.endpoint, "allow_http": "true"})
        store.put("object", b"x")
        assert store.get("object") == b"x"


@pytest.mark.xdist_group("s3")
def test_a_store_opens_with_the_keys_of_the_environment(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3_server.key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3_server.secret)
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_server.endpoint)
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    store = open_store(s3_server.uri("environment"))
    store.put("object", b"x")
    assert store.get("object") == b"x"


def test_no_credentials_at_all_is_told_as_such(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    # Where a machine of the cloud would be asked for its role, nobody is.
    options = {"metadata_endpoint": "http://127.0.0.1:9", "region": "us-east-1", **FAST}
    with pytest.raises(GrebeError) as failed:
        open_store("s3://lake/x", options).get("object")
    assert isinstance(failed.value, StoreRefused)
    assert failed.value.code == "STORE_REFUSED_NO_CREDENTIALS"
    assert "storage_options" in str(failed.value)
