"""One place has one canonical URI."""

import os
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grebe.errors import GrebeError, InvalidConfig, TableNotFound
from grebe.files import canonical_uri, join_uri, location_given, path_given, relative_path
from grebe.files.unicode_names import escaped


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("/lake/t/", "file:///lake/t"),
        ("file:/lake/t", "file:///lake/t"),
        ("file:///lake//t", "file:///lake/t"),
        ("file://localhost/lake/./x/../t", "file:///lake/t"),
        ("/", "file://"),
        ("s3://bucket/t", "s3://bucket/t"),
        ("s3a://bucket/t/", "s3://bucket/t"),
        ("S3N://bucket", "s3://bucket"),
        ("s3://Bucket.With.Dots/K", "s3://Bucket.With.Dots/K"),
        ("gcs://b/t", "gs://b/t"),
        ("abfss://c@Account.dfs.core.windows.net/t", "abfs://c@account.dfs.core.windows.net/t"),
        ("wasb://c@account.blob.core.windows.net/t", "abfs://c@account.dfs.core.windows.net/t"),
        ("hdfs://NameNode:9000/t", "hdfs://namenode:9000/t"),
        ("hdfs:///t", "hdfs:///t"),
        ("HTTPS://Host.Example:443/t", "https://host.example/t"),
    ],
)
def test_every_way_to_write_a_place_gives_one_uri(written: str, canonical: str) -> None:
    assert canonical_uri(written) == canonical


def test_a_relative_path_starts_at_the_working_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert canonical_uri("t/x") == f"file://{tmp_path}/t/x"
    assert canonical_uri("../t") == f"file://{tmp_path.parent}/t"


@pytest.mark.parametrize(
    "uri", ["s3://key:secret@bucket/t", "https://user:secret@bucket/t", "hdfs://user:secret@bucket/t"]
)
def test_credentials_are_dropped(uri: str) -> None:
    assert "secret" not in canonical_uri(uri)
    assert canonical_uri(uri).endswith("://bucket/t")


@pytest.mark.parametrize("name", ["a b", "a%20b", "50%", "a#b", "q?x", "ü", "k=v", "a+b", "a&b;c"])
def test_a_path_is_taken_as_it_stands_and_an_encoded_uri_is_decoded_once(name: str) -> None:
    canonical = f"s3://bucket/t/{name}"
    assert canonical_uri(canonical) == canonical
    assert canonical_uri(f"s3a://bucket/t/{quote(name)}", encoded=True) == canonical


@given(st.text("ab%#? =.:@+ü漢🐟\\", min_size=1))
@settings(deadline=None)
def test_the_canonical_form_of_a_canonical_form_is_itself(name: str) -> None:
    for form in (f"s3a://bucket/{name}", f"/folder/{name}", f"file:/folder/{name}"):
        once = canonical_uri(form)
        assert canonical_uri(once) == once


def test_a_path_below_a_root_and_back() -> None:
    for root in ("s3://bucket", "s3://bucket/t", "file://", "file:///t"):
        assert relative_path(root, join_uri(root, "a/b c")) == "a/b c"
        assert relative_path(root, root) == ""
        assert join_uri(root, "") == root
    assert relative_path("s3://bucket/t", "s3://bucket/table") is None
    assert join_uri("s3://bucket/t", "s3://other/x") == "s3://other/x"


def test_an_empty_path_is_refused() -> None:
    with pytest.raises(TableNotFound, match=r"\[TABLE_NOT_FOUND_EMPTY_PATH\].*empty path"):
        canonical_uri("")


@pytest.mark.parametrize(
    "path", [None, 5, True, 1.5, [], ["/lake/t"], object(), "a\0b", "\ud800", b"/lake/\xff", Path("a\0b")]
)
def test_what_is_no_path_is_refused_as_a_table_and_as_a_location(path: object) -> None:
    with pytest.raises(TableNotFound, match=r"\[TABLE_NOT_FOUND_PATH\] path=.*(give|rename)"):
        path_given(path)  # type: ignore[arg-type]  # what a caller without types may give
    with pytest.raises(InvalidConfig, match=r"\[INVALID_CONFIG_VALUE\] location=.*(give|rename)"):
        location_given(path)  # type: ignore[arg-type]  # as above


@pytest.mark.parametrize(
    "path", ["s3://key:secret@bucket/\0", "s3://key:secret@bucket/\ud800", ["s3://key:secret@bucket/t"]]
)
def test_a_path_that_is_refused_shows_no_credentials(path: object) -> None:
    with pytest.raises(GrebeError) as refused:
        path_given(path)  # type: ignore[arg-type]  # what a caller without types may give
    assert "secret" not in str(refused.value)


def test_a_name_that_is_no_unicode_is_written_with_its_bytes() -> None:
    assert escaped("größe") == "größe"
    assert escaped(os.fsdecode(b"/lake/gr\xf6\xdfe")) == r"/lake/gr\xf6\xdfe"
    assert escaped("x\ud800") == r"x\ud800"
