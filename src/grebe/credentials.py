"""Credentials in what names a place, which would get into messages, into the log of a table and into what a `repr` shows."""

import re
from urllib.parse import unquote

from grebe.errors import InvalidConfig

# One letter is a drive. Drivers stack their schemes: `jdbc:postgresql:`.
_SCHEMES = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.\-]+):)+")
# A glob may hold a question mark; what follows one in a query string is a name and its value.
_QUERY = re.compile(r"\?[^/?*]+=")
# The first part of what follows a scheme, up to its last `@`.
_USER = re.compile(r"[^/]*(?=@)")
# A secret may hold a slash. What looks like a port then is no number.
_CUT_USER = re.compile(r"(?:[^/:\[\]]*|\[[^/\]]*\]):(?![0-9]*/)[^/]*/.*@", re.DOTALL)
_AZURE = {"abfs", "abfss", "wasb", "wasbs", "az", "azure", "adl"}
"""Before the `@` of their URIs stands a container."""
_WEB, _WEB_SIGNS = {"http", "https", "ftp"}, set("?#")
"""Nothing is a glob there: whatever follows one of the signs is no part of the path, and may be a token."""
_HOSTS = {"s3", "s3a", "s3n", "gs", "gcs", "http", "https", "ftp", "sftp"}
"""Their URIs have an authority always. A path of others, as `hdfs:/me@work`, may begin with a name that holds an `@`."""


def refuse_credentials(uri: str) -> None:
    """Raise `InvalidConfig` for a URI with a query string or with user information, however many slashes it begins with. The
    container before the `@` of an Azure URI is none, and a local path may hold anything."""
    found = _SCHEMES.match(uri)
    if found is None:
        return
    scheme = found[1].lower()
    rest = uri[found.end() :]
    slashes = len(rest) - len(rest.lstrip("/"))
    if scheme == "file" and slashes not in (0, 2):
        return
    has_query = (
        not _WEB_SIGNS.isdisjoint(rest) if scheme in _WEB else scheme != "file" and _QUERY.search(rest) is not None
    )
    if has_query or _has_user(scheme, rest[slashes:], slashes):
        raise InvalidConfig(
            "the URI holds credentials or a query string; leave them out, and give credentials by storage_options, the environment "
            "or a profile",
            detail="CREDENTIALS_IN_URI",
        )


def _has_user(scheme: str, rest: str, slashes: int) -> bool:
    found = _USER.match(rest)
    if found is None:
        return _CUT_USER.match(rest) is not None
    if ":" in unquote(found[0]):
        return True
    if scheme in _AZURE or not found[0]:
        return False
    return slashes in (0, 2) or scheme in _HOSTS
