"""Which store a URI belongs to."""

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path

from grebe.errors import InvalidConfig, Unsupported
from grebe.files import canonical_uri
from grebe.store.clouds import open_azure, open_gcs, open_http, open_s3
from grebe.store.hdfs import HdfsStore
from grebe.store.local import LocalStore
from grebe.store.protocol import Store


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
    _refuse_credentials(text)
    canonical = canonical_uri(text)
    scheme = canonical.partition("://")[0]
    opener = _BY_SCHEME.get(scheme)
    if opener is None:
        raise Unsupported(
            f"no store for {scheme}:// is known; there are {', '.join(f'{name}://' for name in _BY_SCHEME)} and local paths",
            detail="SCHEME",
        )
    return opener(canonical, storage_options or {})


def _refuse_credentials(uri: str) -> None:
    """A URI gets into logs, messages and the log of the table: a password in it would, too."""
    scheme, found, rest = uri.partition("://")
    authority, _, path = rest.partition("/")
    in_query = scheme.lower() != "file" and any(
        f"{name}=" in path for name in ("sig", "X-Amz-Signature", "X-Goog-Signature")
    )
    if found and (":" in authority.rpartition("@")[0] or in_query):
        raise InvalidConfig(
            "the URI holds credentials; leave them out, and give them by storage_options, the environment or a profile",
            detail="CREDENTIALS_IN_URI",
        )
