"""Which store a URI belongs to."""

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path

from grebe.clock import SYSTEM
from grebe.credentials import refuse_credentials
from grebe.errors import Unsupported
from grebe.files import canonical_uri
from grebe.store.clouds import open_azure, open_gcs, open_http, open_s3
from grebe.store.hdfs import HdfsStore
from grebe.store.local import LocalStore
from grebe.store.patient import PatientStore
from grebe.store.protocol import Store

_PATIENCE = 5.0
"""Seconds. Clients of object stores have repeated a request for a while by then."""


def _open_local(uri: str, options: Mapping[str, str]) -> Store:
    return LocalStore(Path(uri.removeprefix("file://") or "/"))


def _open_hdfs(uri: str, options: Mapping[str, str]) -> Store:
    if importlib.util.find_spec("hdfs_native") is None:
        raise Unsupported(
            f"{uri} needs the package hdfs-native; install the extra `grebe[hdfs]`", detail="NO_HDFS_CLIENT"
        )
    return HdfsStore(uri, options)


_BY_SCHEME: dict[str, Callable[[str, Mapping[str, str]], Store]] = {
    "file": _open_local,
    "s3": open_s3,
    "gs": open_gcs,
    "abfs": open_azure,
    "http": open_http,
    "https": open_http,
    "hdfs": _open_hdfs,
    "viewfs": _open_hdfs,
}


def open_store(uri: str | Path, storage_options: Mapping[str, str] | None = None) -> Store:
    """The store rooted at `uri`: a local path, or a URI of one of the schemes above and their other names (s3a, az, gcs, …)."""
    text = str(uri)
    refuse_credentials(text)
    canonical = canonical_uri(text)
    scheme = canonical.partition("://")[0]
    opener = _BY_SCHEME.get(scheme)
    if opener is None:
        raise Unsupported(
            f"no store for {scheme}:// is known; there are {', '.join(f'{name}://' for name in _BY_SCHEME)} and local paths",
            detail="SCHEME",
        )
    return opener(canonical, storage_options or {})


def open_table_store(uri: str | Path, storage_options: Mapping[str, str] | None = None) -> Store:
    """The store of a table's own files: as `open_store`, but links on a local disk are followed when it is read, as Spark does, and
    a read without a clear answer is repeated."""
    return patient(raw_table_store(uri, storage_options))


def patient(store: Store) -> Store:
    """Repeat reads of a table's files that get no clear answer, and raise `StoreUnreachable` where none gets one."""
    return PatientStore(store, SYSTEM, _PATIENCE)


def raw_table_store(uri: str | Path, storage_options: Mapping[str, str] | None = None) -> Store:
    """The store of a table's own files as it is, for whoever wraps it."""
    store = open_store(uri, storage_options)
    if isinstance(store, LocalStore):
        return LocalStore(Path(store.uri.removeprefix("file://") or "/"), follow_links=True)
    return store
