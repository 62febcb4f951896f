"""One URI for one place, however it is written.

The canonical form is `scheme://authority/path` in decoded text, without a trailing slash: `file:///lake/my table`.
Grebe compares files by it, joins a path below a root as `root + "/" + path`, and never decodes it again.

Two kinds of text name a place, and only whoever hands it over knows which it is:
- A *path*: what people write, what Hadoop's `Path` takes, what Iceberg keeps in its manifests. It is taken as it
  stands. The folder `a%20b` has a per cent sign in its name, as it does for `spark.read.parquet("s3://lake/a%20b")`.
  The canonical form is itself such a path, so that `canonical_uri` may be applied to its own result.
- An *encoded URI*: what Spark returns from `inputFiles()`, `input_file_name()` and `_metadata.file_path`, and what
  Delta keeps in its log. Its escapes are decoded exactly once (`encoded=True`). Spark writes the folder `a%20b` as
  `a%2520b` there, and `ü` as `ü`.
"""

import os
import posixpath
import re
from urllib.parse import unquote

from grebe.credentials import refuse_credentials
from grebe.errors import InvalidConfig, TableNotFound
from grebe.files.unicode_names import escaped, is_unicode

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):(?=/)")
_ONE_STORE = {
    "s3a": "s3",
    "s3n": "s3",
    "gcs": "gs",
    "abfss": "abfs",
    "wasb": "abfs",
    "wasbs": "abfs",
    "az": "abfs",
    "azure": "abfs",
    "adl": "abfs",
}
# A bucket is a name that the store compares letter by letter; only these schemes have a host there.
_HOSTS = {"hdfs", "webhdfs", "swebhdfs", "viewfs", "http", "https", "ftp", "sftp"}
# HDFS has a default port too, but only a real host may leave it out: a name service must, so neither form becomes the
# other.
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}

_MOST_SHOWN = 200
"""Characters of a path in a message."""


def canonical_uri(uri: str, *, encoded: bool = False) -> str:
    """The canonical form of a path, or of an encoded URI."""
    if not uri:
        raise TableNotFound(
            "an empty path names no place; give a path, or a URI such as s3://bucket/t", detail="EMPTY_PATH"
        )
    found = _SCHEME.match(uri)
    if found is None:
        return "file://" + _clean(os.path.abspath(unquote(uri) if encoded else uri))  # noqa: PTH100 - Path.absolute keeps `..`
    scheme = found[1].lower()
    scheme = _ONE_STORE.get(scheme, scheme)
    rest = uri[found.end() :]
    authority, path = "", rest
    if rest.startswith("//"):
        authority, _, path = rest[2:].partition("/")
    return f"{scheme}://{_authority(scheme, authority)}{_clean(unquote(path) if encoded else path)}"


def path_given(path: str | os.PathLike[str]) -> str:
    """Return the text of a path as users give it: `~` is their home folder, and a `pathlib.Path` is one of this machine, whatever
    the working folder of Spark is. A URI that went through `pathlib` gets its second slash back. Raises `TableNotFound` for what
    names no place."""
    fault = _fault(path)
    if fault:
        raise TableNotFound(f"path={fault}", detail="PATH")
    return _text_of(path)


def location_given(location: str | os.PathLike[str]) -> str:
    """Return the text of a location of indexes, as `path_given` does of a table. Raises `InvalidConfig` for what is none."""
    fault = _fault(location)
    if fault:
        raise InvalidConfig(f"location={fault}", detail="VALUE")
    return _text_of(location)


def _fault(path: object) -> str:
    """Return the path and what is wrong with it, for a message; empty if nothing is."""
    if not isinstance(path, str | bytes | os.PathLike):
        # Of a list the type alone: a path in it may hold credentials.
        shown = repr(path) if path is None or isinstance(path, int | float) else f"… of the type {type(path).__name__}"
        return f"{shown} is no path; give one path or URI, as text or as a pathlib.Path"
    text = os.fsdecode(path)
    if "\0" not in text and is_unicode(text):
        return ""
    refuse_credentials(text)
    shown = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
    if "\0" in text:
        return f"{shown!r} holds a NUL character, which no name can have; give the path without it"
    return f"{escaped(shown)} is no UTF-8 text, and Grebe writes names in UTF-8; rename what lies there, and give its new name"


def _text_of(path: str | os.PathLike[str]) -> str:
    text = os.fsdecode(path)
    if isinstance(path, str):
        return os.path.expanduser(text) if text.startswith("~") else text  # noqa: PTH111 - a URI is no `Path`
    found = _SCHEME.match(text)
    if found is None:
        return os.path.abspath(os.path.expanduser(text))  # noqa: PTH100, PTH111 - as `canonical_uri` has it
    rest = text[found.end() :]
    return text if rest.startswith("//") or found[1].lower() == "file" else f"{found[1]}:/{rest}"


def join_uri(root: str, path: str) -> str:
    """The canonical URI of `path`, which is relative to the canonical `root` or itself canonical."""
    return path if "://" in path else f"{root}/{path}" if path else root


def relative_path(root: str, uri: str) -> str | None:
    """The way from the canonical `root` to a canonical `uri` below it ("" for the root itself), or None."""
    if uri == root:
        return ""
    return uri[len(root) + 1 :] if uri.startswith(root + "/") else None


def _clean(path: str) -> str:
    """As Hadoop does: no empty parts, `.` and `..` resolved. The top of a store is the empty text."""
    return posixpath.normpath("/" + path.lstrip("/")).rstrip("/")


def _authority(scheme: str, authority: str) -> str:
    if scheme == "file":
        return "" if authority.lower() == "localhost" else authority
    if scheme == "abfs":
        container, at, account = authority.partition("@")
        # The two endpoints of one account show the same files.
        return f"{container}@{account.lower().replace('.blob.', '.dfs.', 1)}" if at else authority
    host = authority.rpartition("@")[2]
    if scheme in _HOSTS:
        host = host.lower().removesuffix(_DEFAULT_PORTS.get(scheme, ""))
    return host
