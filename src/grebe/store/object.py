"""Object stores (S3, Google Cloud Storage, Azure, and HTTP for reading) through obstore.

`put_if_absent` is the store's own conditional put. obstore repeats a request whose answer got lost, and the repetition of a put
that had arrived is answered "already exists": so `ObjectExists` may speak of the caller's own write, and the commit protocol
reckons with it. Times are whole seconds: a HEAD has no more, and the same object must show the same time in a listing.

No message of obstore's is passed on: what a caller learns is the status, the store's code for it, and what to do.
"""

import asyncio
import functools
import os
import re
import threading
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from grebe.errors import GrebeError, StoreRefused
from grebe.store.paths import checked, folder
from grebe.store.protocol import ObjectChanged, ObjectExists, ObjectInfo, ObjectMissing, OutcomeUnknown, require_at_most
from grebe.store.ranges import cut, spans

if TYPE_CHECKING:
    from obstore import Bytes, GetOptions, ObjectMeta
    from obstore.store import ObjectStore as Client

_STATUS = re.compile(r"returned non-2xx status code: (\d{3})")
_CODE = re.compile(r"<Code>([A-Za-z]{1,60})</Code>")
_PAST_THE_END = re.compile(r"status code: 416|Wanted range starting at \d+, but object was only \d+ bytes long")
# Where a machine of a cloud is asked for the credentials of its own role.
_ROLE_OF_THE_MACHINE = re.compile(r"/latest/(?:api/token|meta-data)|/computeMetadata/|/metadata/identity")
_TRY_AGAIN = {"408", "409", "425", "429"}
_REASONS = {
    "timed out": re.compile(r"TimedOut|timed out|deadline", re.IGNORECASE),
    "connection refused": re.compile(r"connection ?refused", re.IGNORECASE),
    "the host is not known": re.compile(r"dns error|failed to lookup", re.IGNORECASE),
    "connection lost": re.compile(r"reset|closed|broken ?pipe|incomplete|eof|decoding", re.IGNORECASE),
}


class ObjectStore:
    """`base` is the path of the root in its bucket, and ends in `/` unless it is the bucket itself."""

    def __init__(self, uri: str, client: "Client", base: str, *, read_only: bool = False) -> None:
        self._uri = uri
        self._client = client
        self._base = base
        self._read_only = read_only
        self.has_worked = False

    @property
    def uri(self) -> str:
        return self._uri

    def __repr__(self) -> str:
        return f"ObjectStore({self._uri!r})"

    def get(self, path: str, most: int | None = None) -> bytes:
        import obstore

        key = self._key(path)
        with _Outcomes(self, path, "read"):
            found = obstore.get(self._client, key)
            require_at_most(found.meta["size"], most, f"{self.uri}/{path}")
            return found.bytes().to_bytes()

    def get_range(self, path: str, start: int, length: int) -> bytes:
        return self.get_ranges(path, [(start, length)])[0]

    def get_ranges(
        self, path: str, ranges: Sequence[tuple[int, int]], expected: ObjectInfo | None = None
    ) -> list[bytes]:
        asked = self.spans(ranges)
        key = self._key(path)
        with _Outcomes(self, path, "read"):
            if len(asked) == 1:
                return cut(ranges, asked, [self._read(key, *asked[0], expected)])
            return cut(ranges, asked, _wait_for_all([self._read_async(key, *span, expected) for span in asked]))

    @staticmethod
    def spans(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """What `get_ranges` really reads: one request each."""
        return spans(ranges)

    def put_if_absent(self, path: str, data: bytes) -> None:
        import obstore

        key = self._key_to_write(path)
        with _Outcomes(self, path, "put if absent"):
            obstore.put(self._client, key, data, mode="create")

    def put(self, path: str, data: bytes) -> None:
        import obstore

        key = self._key_to_write(path)
        with _Outcomes(self, path, "put"):
            obstore.put(self._client, key, data)

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[ObjectInfo]:
        import obstore

        top = folder(prefix)
        offset = _safe_offset(self._base + start_after, len(self._base + top)) if start_after else None
        with _Outcomes(self, prefix, "list"):
            pages = obstore.list(self._client, (self._base + top).rstrip("/") or None, offset=offset, chunk_size=1000)
            found = [_info(self._relative(each["path"]), each) for page in pages for each in page]
        # Not every store lists in the order of whole paths: some go folder by folder.
        found.sort(key=lambda info: info.path)
        return (info for info in found if info.path > start_after)

    def children(self, prefix: str = "") -> Sequence[str]:
        import obstore

        start = len(self._base + folder(prefix))
        with _Outcomes(self, prefix, "list"):
            found = obstore.list_with_delimiter(self._client, (self._base + folder(prefix)).rstrip("/") or None)
        objects = [each["path"][start:] for each in found["objects"]]
        folders = [f"{each.rstrip('/')[start:]}/" for each in found["common_prefixes"]]
        return [name for name in (*objects, *folders) if name.rstrip("/")]

    def delete(self, path: str) -> None:
        import obstore

        key = self._key_to_write(path)
        try:
            with _Outcomes(self, path, "delete"):
                obstore.delete(self._client, key)
        except ObjectMissing:
            return

    def stat(self, path: str) -> ObjectInfo:
        import obstore

        key = self._key(path)
        with _Outcomes(self, path, "read"):
            return _info(path, obstore.head(self._client, key))

    def _key(self, path: str) -> str:
        return self._base + checked(path)

    def _key_to_write(self, path: str) -> str:
        if self._read_only:
            raise StoreRefused(
                f"{self._uri} can only be read; keep the indexes on another store with location=…", detail="READ_ONLY"
            )
        return self._key(path)

    def _relative(self, key: str) -> str:
        return key[len(self._base) :]

    def _read(self, key: str, start: int, length: int, expected: ObjectInfo | None) -> bytes:
        import obstore
        from obstore.exceptions import BaseError

        try:
            if expected is None:
                return obstore.get_range(self._client, key, start=start, length=length).to_bytes()
            found = obstore.get(self._client, key, options=_if_same(expected, start, length))
            self._require(expected, found.meta)
            return found.bytes().to_bytes()
        except BaseError as error:
            if _PAST_THE_END.search(str(error)):
                return b""
            raise

    async def _read_async(self, key: str, start: int, length: int, expected: ObjectInfo | None) -> bytes:
        import obstore
        from obstore.exceptions import BaseError

        try:
            read: Bytes
            if expected is None:
                read = await obstore.get_range_async(self._client, key, start=start, length=length)
            else:
                found = await obstore.get_async(self._client, key, options=_if_same(expected, start, length))
                self._require(expected, found.meta)
                read = await found.bytes_async()
        except BaseError as error:
            if _PAST_THE_END.search(str(error)):
                return b""
            raise
        return read.to_bytes()

    def _require(self, expected: ObjectInfo, meta: "ObjectMeta") -> None:
        """Compare what the reply says of the object: not every store heeds a condition. Its etag decides where both have one; else
        the time, which a reply has in whole seconds."""
        found = _info(expected.path, meta)
        if found.etag is None or expected.etag is None:
            found = replace(found, modified_ms=found.modified_ms + expected.modified_ms % 1000)
        else:
            found = replace(found, modified_ms=expected.modified_ms)
        if not found.is_same(expected):
            raise ObjectChanged(f"{self._uri}/{expected.path} was changed")


def _if_same(expected: ObjectInfo, start: int, length: int) -> "GetOptions":
    """Return the options of a conditional read. A weak etag matches nothing in a condition."""
    if expected.etag is None or expected.etag.startswith("W/"):
        return {"range": (start, start + length)}
    return {"range": (start, start + length), "if_match": f'"{expected.etag}"'}


def _info(path: str, meta: "ObjectMeta") -> ObjectInfo:
    etag = meta["e_tag"]
    return ObjectInfo(
        path, meta["size"], int(meta["last_modified"].timestamp()) * 1000, etag.strip('"') if etag is not None else None
    )


def _safe_offset(start_after: str, prefix_length: int) -> str | None:
    """An offset that no store takes for more than is meant, at or before `start_after`; what it lets through is left out here.

    Stores that list folder by folder put the folder `a` before `a-b`, though `a/` sorts behind `a-`; and take `a` to mean all of
    the folder `a` as well. Both happen only where a name goes on with a character below `/`, or ends: so the offset stops short of
    the first such place.
    """
    start_after = start_after.rstrip("/")
    for place in range(1, len(start_after)):
        if start_after[place] < "/" and start_after[place - 1] != "/":
            break
    else:
        place = len(start_after)
    offset = start_after[: place - 1]
    return offset if len(offset) > prefix_length and not offset.endswith("/") else None


class _Outcomes:
    """Turns what obstore raises into the outcomes of the protocol, without its text."""

    def __init__(self, store: ObjectStore, path: str, call: str) -> None:
        self._store = store
        self._where = f"{store.uri}/{path}".rstrip("/")
        self._call = call

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        from obstore.exceptions import BaseError

        if error is None:
            self._store.has_worked = True
        elif isinstance(error, BaseError | OSError | ValueError | NotImplementedError):
            raise self._outcome(error) from None

    def _outcome(self, error: Exception) -> GrebeError:
        from obstore.exceptions import (
            AlreadyExistsError,
            NotSupportedError,
            PermissionDeniedError,
            PreconditionError,
            UnauthenticatedError,
        )

        text = str(error)
        found = _STATUS.search(text)
        status = found[1] if found else ""
        if isinstance(error, PreconditionError) and self._call == "read":
            return ObjectChanged(f"{self._where} was changed")
        if isinstance(error, AlreadyExistsError | PreconditionError):
            # Without a condition the store only means that another write is under way.
            return (ObjectExists if self._call == "put if absent" else OutcomeUnknown)(f"{self._where} exists already")
        if _ROLE_OF_THE_MACHINE.search(text) and not _ROLE_OF_THE_MACHINE.search(self._where):
            if self._store.has_worked:
                return OutcomeUnknown(f"{self._where}: this machine's role cannot be had at the moment")
            return StoreRefused(
                f"no credentials for {self._where}: none in storage_options, the environment or a profile, and this machine has no "
                "role of its own; give one of them",
                detail="NO_CREDENTIALS",
            )
        if isinstance(error, FileNotFoundError) or status == "404":
            return self._missing(text)
        if isinstance(error, PermissionDeniedError | UnauthenticatedError) or status in ("401", "403"):
            return StoreRefused(
                f"no permission for {self._where} ({_said(status, text)}); check the credentials and their rights, or keep the "
                "indexes elsewhere with location=…",
                detail="NO_PERMISSION",
            )
        if "HTTP error: builder error" in text:
            return StoreRefused(
                f"the endpoint of {self._store.uri} is not an https address; allow others with the storage option allow_http=true",
                detail="NO_HTTPS",
            )
        if "Received redirect without LOCATION" in text or status.startswith("3"):
            return StoreRefused(
                f"{self._store.uri} is in another region; name it with the storage option region=…", detail="REGION"
            )
        if isinstance(error, NotSupportedError | NotImplementedError | ValueError):
            return StoreRefused(f"the store cannot do this for {self._where}", detail="UNSUPPORTED")
        if status.startswith("4") and status not in _TRY_AGAIN and "<Code>RequestTimeout</Code>" not in text:
            return StoreRefused(f"the store refused {self._where} ({_said(status, text)})", detail="REQUEST")
        return OutcomeUnknown(f"{self._where}: {_said(status, text)}")

    def _missing(self, text: str) -> GrebeError:
        if self._call in ("put if absent", "put", "list") or "NoSuchBucket" in text or "ContainerNotFound" in text:
            return StoreRefused(
                f"{self._store.uri}: there is no such bucket; create it, or correct the URI", detail="NO_BUCKET"
            )
        return ObjectMissing(f"{self._where} is not there")


def _said(status: str, text: str) -> str:
    """The store's answer in a few words of which none is its own, but for its error code."""
    if status:
        code = _CODE.search(text)
        return f"status {status}, {code[1]}" if code else f"status {status}"
    return next((reason for reason, pattern in _REASONS.items() if pattern.search(text)), "no answer")


def _wait_for_all(reads: Sequence[Awaitable[bytes]]) -> list[bytes]:
    async def gathered() -> list[bytes]:
        return await asyncio.gather(*reads)

    return asyncio.run_coroutine_threadsafe(gathered(), _loop_of(os.getpid())).result()


@functools.cache
def _loop_of(process: int) -> asyncio.AbstractEventLoop:
    """A loop in a thread of its own, so that callers may themselves be inside a loop; one a process, for threads do not survive a
    fork."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name=f"grebe-reads-{process}", daemon=True).start()
    return loop
