"""Opens object stores by their URIs.

Credentials come from `storage_options` first and from each platform's usual places after that: the environment, profiles, and the
machine's own role. The names of options are obstore's, in any case, with or without the platform's prefix (`region`, `aws_region`);
`timeout`, `connect_timeout`, `allow_http` and other settings of the connection go with them, as do `max_retries` and
`retry_timeout` (seconds).
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from grebe.errors import InvalidConfig
from grebe.store.aws import with_profile
from grebe.store.object import ObjectStore
from grebe.store.redact import redacted

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig
    from obstore.store import ObjectStore as Client

# A caller that waits for a commit repeats it by itself; what obstore does below only bridges a short disturbance.
_CONNECTION = {"timeout": "30s", "connect_timeout": "5s"}
_MAX_RETRIES, _RETRY_SECONDS = 3, 10.0


def open_s3(uri: str, options: Mapping[str, str]) -> ObjectStore:
    """`s3://bucket/path`."""
    from obstore.store import S3Store

    bucket, base = _parts(uri)
    # A bulk delete of one object is a request that fewer servers know.
    settings, provider = with_profile({"disable_bulk_delete": "true", **_lower(options)})
    return _opened(
        uri, base, settings, lambda config, retry: S3Store(bucket, config=config, retry_config=retry, **provider)
    )


def open_gcs(uri: str, options: Mapping[str, str]) -> ObjectStore:
    """`gs://bucket/path`."""
    from obstore.store import GCSStore

    bucket, base = _parts(uri)
    return _opened(
        uri, base, _lower(options), lambda config, retry: GCSStore(bucket, config=config, retry_config=retry)
    )


def open_azure(uri: str, options: Mapping[str, str]) -> ObjectStore:
    """`abfs://container@account.host/path`, or `abfs://container/path` with the account in an option or the environment."""
    from obstore.store import AzureStore

    authority, base = _parts(uri)
    container, _, host = authority.partition("@")
    account = {"account_name": host.partition(".")[0]} if host else {}
    settings = {**account, **_lower(options)}
    return _opened(uri, base, settings, lambda config, retry: AzureStore(container, config=config, retry_config=retry))


def open_http(uri: str, options: Mapping[str, str]) -> ObjectStore:
    """Files of a web server, to be read only."""
    from obstore.store import HTTPStore

    def client(config: "ClientConfig", retry: "RetryConfig") -> "Client":
        return HTTPStore.from_url(quote(uri, safe=":/@"), client_options=config, retry_config=retry)

    return _opened(uri, "", {"allow_http": "true", **_lower(options)}, client, read_only=True)


def _opened(
    uri: str,
    base: str,
    options: Mapping[str, str],
    make: Callable[[Any, "RetryConfig"], "Client"],
    *,
    read_only: bool = False,
) -> ObjectStore:
    from obstore.exceptions import BaseError

    settings = {**_CONNECTION, **options}
    try:
        retry: RetryConfig = {
            "max_retries": int(settings.pop("max_retries", _MAX_RETRIES)),
            "retry_timeout": timedelta(seconds=float(settings.pop("retry_timeout", _RETRY_SECONDS))),
            "backoff": {
                "init_backoff": timedelta(milliseconds=100),
                "max_backoff": timedelta(seconds=2),
                "base": 2,
            },
        }
        client = make(settings, retry)
    except (BaseError, ValueError, TypeError) as error:
        # What follows a second colon may quote from the value.
        reason = ": ".join(redacted(str(error), options.values()).split(": ")[:2])
        raise InvalidConfig(f"the storage options for {uri} do not fit: {reason}", detail="STORAGE_OPTIONS") from None
    return ObjectStore(uri, client, base, read_only=read_only)


def _parts(uri: str) -> tuple[str, str]:
    """Bucket, and the path in it with a slash behind it."""
    bucket, _, path = uri.partition("://")[2].partition("/")
    return bucket, f"{path}/" if path else ""


def _lower(options: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in options.items()}
