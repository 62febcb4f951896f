"""Which store a URI opens, under which canonical name, and which are refused."""

from pathlib import Path

import pytest

from grebe.credentials import refuse_credentials
from grebe.errors import GrebeError, InvalidConfig, StoreRefused, Unsupported
from grebe.store.hdfs import HdfsStore
from grebe.store.local import LocalStore
from grebe.store.object import ObjectStore
from grebe.store.opening import open_store

KEYS = {"access_key_id": "a", "secret_access_key": "b", "region": "us-east-1"}
AZURE = {"account_name": "account", "account_key": "YWJj"}


@pytest.mark.parametrize(
    ("uri", "options", "canonical"),
    [
        ("s3://lake/orders/", KEYS, "s3://lake/orders"),
        ("s3a://lake/my orders", KEYS, "s3://lake/my orders"),
        ("s3n://lake", KEYS, "s3://lake"),
        ("s3://lake/x", {"AWS_ACCESS_KEY_ID": "a", "aws_secret_access_key": "b"}, "s3://lake/x"),
        ("gs://lake/x", {"skip_signature": "true"}, "gs://lake/x"),
        ("gcs://lake/x", {"skip_signature": "true"}, "gs://lake/x"),
        ("az://lake/x", AZURE, "abfs://lake/x"),
        (
            "abfss://lake@account.dfs.core.windows.net/x",
            {"account_key": "YWJj"},
            "abfs://lake@account.dfs.core.windows.net/x",
        ),
        ("https://example.org/data", {}, "https://example.org/data"),
    ],
)
def test_object_stores_open_by_every_name_of_their_scheme(uri: str, options: dict[str, str], canonical: str) -> None:
    store = open_store(uri, options)
    assert isinstance(store, ObjectStore)
    assert store.uri == canonical


def test_local_paths_open_absolute_relative_and_as_uris(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    expected = f"file://{tmp_path}/my table"
    uris = [f"file://{tmp_path}/my table", f"file:{tmp_path}/my table"]
    places: list[str | Path] = [tmp_path / "my table", f"{tmp_path}/my table", "my table"]
    for given in [*places, *uris]:
        store = open_store(given)
        assert isinstance(store, LocalStore)
        assert store.uri == expected
        store.put("object", str(given).encode())
    assert [entry.name for entry in tmp_path.iterdir()] == ["my table"]


def test_hdfs_opens_without_a_jvm() -> None:
    store = open_store("hdfs://127.0.0.1:9/lake")
    assert isinstance(store, HdfsStore)
    assert store.uri == "hdfs://127.0.0.1:9/lake"


@pytest.mark.parametrize("uri", ["hdfs:///t", "hdfs:/t", "viewfs:///t"])
def test_a_name_node_that_nothing_names_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, uri: str) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    with pytest.raises(StoreRefused, match=r"hdfs://node:8020/…, or set HADOOP_CONF_DIR") as refused:
        open_store(uri)
    assert refused.value.code == "STORE_REFUSED_NAME_NODE"
    assert refused.value.__cause__ is None


@pytest.mark.parametrize("uri", ["hdfs://node:port/t", "hdfs://a b/t", "viewfs://mounts/t"])
def test_a_name_node_that_cannot_be_one_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, uri: str) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    with pytest.raises(StoreRefused) as refused:
        open_store(uri)
    assert refused.value.code == "STORE_REFUSED_NAME_NODE"


def test_a_configuration_of_hadoop_that_is_no_xml_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "core-site.xml").write_text("<broken")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    with pytest.raises(StoreRefused, match=r"sound core-site\.xml") as refused:
        open_store("hdfs://node:8020/t")
    assert refused.value.code == "STORE_REFUSED_NAME_NODE"


def test_an_unknown_scheme_is_told_which_there_are() -> None:
    with pytest.raises(Unsupported, match=r"ftp://.*s3://.*hdfs://") as refused:
        open_store("ftp://host/x")
    assert refused.value.code == "UNSUPPORTED_SCHEME"


@pytest.mark.parametrize(
    "options",
    [
        {"acess_key": "CANARY1234"},
        {"allow_http": "CANARY1234"},
        {"timeout": "CANARY1234"},
        {"max_retries": "CANARY1234"},
    ],
)
def test_options_that_do_not_fit_are_refused_without_their_values(options: dict[str, str]) -> None:
    with pytest.raises(InvalidConfig) as refused:
        open_store("s3://lake/x", {**KEYS, **options})
    assert "CANARY" not in str(refused.value)
    assert refused.value.code == "INVALID_CONFIG_STORAGE_OPTIONS"


def test_an_option_that_is_not_known_is_named() -> None:
    with pytest.raises(InvalidConfig, match="acess_key"):
        open_store("s3://lake/x", {"acess_key": "x"})


@pytest.mark.parametrize(
    "uri",
    [
        "s3://key:CANARY@lake/x",
        "https://user:CANARY@example.org/x",
        "hdfs://user:CANARY@host:9/x",
        "abfss://lake@account.dfs.core.windows.net/x?sv=2024&sig=CANARY",
        "https://example.org/x?X-Amz-Signature=CANARY",
        "https://example.org/x?token=CANARY",
        "s3a://CANARY@lake/x",
        "gs://lake/x?anything=CANARY",
        "s3:/key:CANARY@lake/x",
        "s3:///key:CANARY@lake/x",
        "s3:/CANARY@lake/x",
        "s3:key:CANARY@lake/x",
        "S3A:/key:CANARY@lake/x",
        "s3:/lake/x?sig=CANARY",
        "s3://key:CAN/ARY+CANARY@lake/x",
        "https:u:CANARY@h/x",
        "https:user:CANARY@h/x",
        "https:CANARY@h/x",
        "https://h/x?CANARY",
        "https://h/x?a/b=CANARY",
        "HTTP://h/x#CANARY",
        "hdfs:/user:CANARY@host/x",
        "file://u:CANARY@h/x",
        "jdbc:postgresql://u:CANARY@h/x",
        "jdbc:postgresql://h/x?user=u&password=CANARY",
        "abfss:/lake:CANARY@account.dfs.core.windows.net/x",
        "abfss://lake%3ACANARY@account.dfs.core.windows.net/x",
    ],
)
def test_credentials_in_a_uri_are_refused_and_not_repeated(uri: str) -> None:
    with pytest.raises(InvalidConfig, match=r"\[INVALID_CONFIG_CREDENTIALS_IN_URI\].*storage_options") as refused:
        open_store(uri)
    assert "CANARY" not in str(refused.value)


@pytest.mark.parametrize(
    "path",
    [
        "/data/a@b",
        "/a:b@c/t",
        "a@b",
        "./a:b@c",
        "C:/x@y",
        "C:\\x@y",
        "10:30@Berlin",
        "file:/a:b@c/t",
        "file:///a:b@c/t?x=y",
        "file://localhost/a:b@c",
        "abfss://lake@account.dfs.core.windows.net/a@b",
        "wasbs://lake@account.blob.core.windows.net/t",
        "hdfs://node:9000/user/anna@corp/t",
        "hdfs://[::1]:9000/anna@corp",
        "hdfs:/anna@corp/t",
        "hdfs:///anna@corp/t",
        "https://example.org:443/a@b/c",
        "s3://lake/x?/day=1",
        "s3://lake/user=anna@corp/a:b@c",
    ],
)
def test_an_at_sign_that_follows_no_user_is_part_of_a_name(path: str) -> None:
    refuse_credentials(path)


def test_a_web_server_can_only_be_read() -> None:
    store = open_store("https://example.org/data")
    for call in (store.put, store.put_if_absent):
        with pytest.raises(StoreRefused, match="location=") as refused:
            call("object", b"x")
        assert refused.value.code == "STORE_REFUSED_READ_ONLY"
    with pytest.raises(StoreRefused):
        store.delete("object")


def test_hdfs_without_its_client_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(Unsupported, match=r"hdfs://node:1/t needs the package hdfs-native; .*grebe\[hdfs\]") as refused:
        open_store("hdfs://node:1/t")
    assert refused.value.code == "UNSUPPORTED_NO_HDFS_CLIENT"


def test_an_empty_uri_is_refused() -> None:
    with pytest.raises(GrebeError, match=r"\[TABLE_NOT_FOUND_EMPTY_PATH\]"):
        open_store("")
