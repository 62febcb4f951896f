"""Entries and states as bytes. The only place that knows the JSON of the log.

An object is two lines: the body as one line of JSON, then `{"sha256": "…"}` over exactly the bytes of the first line. A cut, a
flipped bit or foreign bytes therefore never pass for an entry. Checkpoints are the same, compressed by gzip.
The JSON follows the dataclasses field by field: tuples are arrays, a set of file ids is an array of [start, end) pairs, a change
names its class in `"change"`. Fields with their default are left out; fields that a reader does not know are ignored.
"""

import contextlib
import dataclasses
import gzip
import hashlib
import json
import math
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import cache
from typing import Any

from grebe.errors import CorruptLog, GrebeError, InvalidIndex, Unsupported
from grebe.files import FileIds
from grebe.files.untrusted import FOREIGN, decoding, gunzip
from grebe.log import checks, invariants
from grebe.log import entry as entries
from grebe.log.entry import FORMAT, Change, Entry, OperationBegun
from grebe.log.liveness import lapse_of
from grebe.log.states import Operation, TableState

MOST_BYTES = 32 * 1024 * 1024
"""Of an entry, and of a checkpoint as it is stored: some 300,000 content files."""
MOST_MARKER_BYTES = 64 * 1024
_AT_LEAST, _MOST_TIMES, _AT_MOST = 16 * 1024 * 1024, 64, 64 * 1024 * 1024
"""A checkpoint may unpack to so many bytes, or so many times its own: states were seen to take a tenth to a twentieth."""
_MOST_PARTS = 1_000_000
"""Arrays and objects in one line of JSON: an empty one takes 20 times its bytes in memory."""
_DEEPEST = 200
"""Arrays and objects within each other in what the log only carries: an encoder recurses, and stacks end."""
_SURROGATE = re.compile(rb"\\u[dD][89abAB]")
"""How JSON writes half a character, which is no text that could be written again."""
NEXT_STEP = (
    "Bring the object back from a backup or an older version of it; if there is none, remove the table's folder under _grebe and "
    "create the indexes anew: no data of the table is in it."
)
_AS_THEY_ARE = frozenset({str, int, float, bool, type(None)})
_CHANGES: Mapping[str, Any] = {c.__name__: c for c in Change.__subclasses__()}


def encode_entry(entry: Entry) -> tuple[bytes, str]:
    """Return the bytes of an entry, and its digest. Raises `InvalidIndex` for one that no reader would take."""
    try:
        checks.check(entry)
    except checks.Refused as refused:
        raise InvalidIndex(f"this does not fit into one entry of the log: {refused}", detail="ENTRY") from refused
    data, digest = _seal({"grebe": FORMAT, **_encoded(entry)})
    if not _is_readable(data):
        raise InvalidIndex(
            f"this takes an entry of {len(data):,} bytes, and {MOST_BYTES:,} are the most: create fewer indexes at once, or "
            "indexes of fewer and larger files",
            detail="ENTRY",
        )
    return data, digest


def decode_entry(data: bytes, where: str) -> tuple[Entry, str]:
    """The entry and its digest. Raises `CorruptLog`, or `Unsupported` for a newer format."""
    body, digest = _unseal(data, where)
    return _build(Entry, body, where), digest


class StateTooLarge(Exception):
    """No reader would take a checkpoint of this state."""


def encode_state(number: int, entry_digest: str, state: TableState) -> bytes:
    """Return the checkpoint of the state after entry `number`, whose digest is `entry_digest`. Raises `StateTooLarge`."""
    sealed, _ = _seal({"grebe": FORMAT, "number": number, "digest": entry_digest, "state": _encoded(state)})
    packed = gzip.compress(sealed, compresslevel=1, mtime=0)
    if len(packed) > MOST_BYTES or not _is_readable(sealed, _most_unpacked(packed)):
        raise StateTooLarge(f"the state after entry {number} takes {len(sealed):,} bytes")
    return packed


def _most_unpacked(packed: bytes) -> int:
    return min(_AT_MOST, max(_AT_LEAST, _MOST_TIMES * len(packed)))


def _is_readable(line: bytes, most: int = MOST_BYTES) -> bool:
    return len(line) <= most and line.count(b"{") + line.count(b"[") <= _MOST_PARTS


def decode_state(data: bytes, where: str) -> tuple[int, str, TableState]:
    """The number and the digest of the entry after which this is the state, and the state."""
    with decoding(lambda why: CorruptLog(f"{where} is damaged: {why}", detail="CHECKPOINT")):
        sealed = gunzip(data, _most_unpacked(data))
    body, _ = _unseal(sealed, where)
    with decoding(lambda why: CorruptLog(f"{where} lacks a part: {why}", detail="CHECKPOINT")):
        number, digest, state = _exactly(int, body["number"]), _exactly(str, body["digest"]), body["state"]
        if not 0 <= number <= checks.MOST:
            raise ValueError(f"the state after entry {number}")
    made = _build(TableState, state, where)
    if problems := invariants.broken(made):
        raise CorruptLog(f"{where} is no state that Grebe wrote: {'; '.join(problems[:3])}", detail="INVARIANT")
    return number, digest, made


def encode_marker(table: str) -> bytes:
    """Return the marker of a location that holds the indexes of the table at this URI."""
    return _seal({"grebe": FORMAT, "table": table})[0]


def decode_marker(data: bytes, where: str) -> str:
    """Return the URI of the table that a location is marked for. Raises `CorruptLog`."""
    body, _ = _unseal(data, where)
    with decoding(lambda why: CorruptLog(f"{where} lacks a part: {why}", detail="MARKER")):
        return str(_exactly(str, body["table"]))


def _seal(body: Mapping[str, Any]) -> tuple[bytes, str]:
    with _encoding():
        line = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    digest = hashlib.sha256(line).hexdigest()
    return b'%b\n{"sha256":"%b"}\n' % (line, digest.encode()), digest


def _unseal(data: bytes, where: str) -> tuple[dict[str, Any], str]:
    line, _, seal = data.partition(b"\n")
    digest = hashlib.sha256(line).hexdigest()
    if seal != b'{"sha256":"%b"}\n' % digest.encode():
        raise CorruptLog(
            f"{where} ({len(data)} bytes) is cut short or damaged: its checksum does not fit. {NEXT_STEP}",
            detail="CHECKSUM",
        )
    with decoding(lambda why: CorruptLog(f"{where} holds no JSON: {why}", detail="FOREIGN")):
        if not _is_readable(line, _AT_MOST):
            raise ValueError(f"more than {_MOST_PARTS:,} arrays and objects")
        # As text: from bytes, half a character would be taken too, and nobody could write it again.
        body = json.loads(line.decode())
        if _SURROGATE.search(line):
            json.dumps(body, ensure_ascii=False).encode()
    if not isinstance(body, dict) or not isinstance(body.get("grebe"), int):
        raise CorruptLog(f"{where} is no object of Grebe's log", detail="FOREIGN")
    if body["grebe"] > FORMAT:
        raise Unsupported(
            f"{where} was written in format {body['grebe']}; this Grebe reads up to {FORMAT}. Upgrade Grebe to use the "
            "indexes of this table; until then it is read without them.",
            detail="LOG_FORMAT",
        )
    return body, digest


@contextlib.contextmanager
def _encoding() -> Iterator[None]:
    try:
        yield
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidIndex(
            f"what an index remembers about itself must be plain JSON data (text, finite numbers, lists, objects): {error}",
            detail="PROPERTIES",
        ) from error


def _encoded(value: Any) -> Any:
    """Return the plain JSON data of an entry or a state."""
    with _encoding():
        return _plain(value)


def _plain(value: Any) -> Any:
    if value.__class__ in _AS_THEY_ARE:
        return value
    if isinstance(value, (str, int, float)):
        return value.value if isinstance(value, StrEnum) else value
    if isinstance(value, FileIds):
        return [list(r) for r in value.ranges]
    if isinstance(value, Mapping):
        # A key that is no text would read back as text; a tuple is none of JSON's keys, so that `_seal` says so.
        return {k if isinstance(k, str) else (k,): _plain(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    if not dataclasses.is_dataclass(value):
        return value  # no JSON: `_seal` says so
    plain = {
        name: _plain(field)
        for name, _, default in _shape(value.__class__)
        if (field := getattr(value, name)) is not default and field != default
    }
    return {"change": type(value).__name__, **plain} if isinstance(value, Change) else plain


_NO_DEFAULT = object()


@cache
def _shape(kind: Any) -> tuple[tuple[str, Any, Any], ...]:
    """(name, type, default) of each field of a dataclass."""
    hints = typing.get_type_hints(kind, vars(entries))
    shape = []
    for f in dataclasses.fields(kind):
        default: Any = _NO_DEFAULT
        if f.default is not dataclasses.MISSING:
            default = f.default
        elif f.default_factory is not dataclasses.MISSING:
            default = f.default_factory()
        shape.append((f.name, hints[f.name], default))
    return tuple(shape)


def _build(kind: Any, plain: Any, where: str) -> Any:
    try:
        return _decoder(kind)(plain)
    except _UnknownChange as unknown:
        raise Unsupported(
            f"{where} holds a change that this Grebe does not know ({unknown}). Upgrade Grebe to use the indexes of this table; "
            "until then it is read without them.",
            detail="LOG_CHANGE",
        ) from unknown
    except checks.Refused as refused:
        raise CorruptLog(
            f"{where} holds what no Grebe ever wrote: {refused}. Nothing that it names was touched. {NEXT_STEP}",
            detail="VALUE",
        ) from refused
    except (*FOREIGN, GrebeError) as error:
        problem = f"{where} does not have the shape of a log object: {type(error).__name__} {error}. {NEXT_STEP}"
        raise CorruptLog(problem, detail="SHAPE") from error


class _UnknownChange(Exception):
    """Written by a newer Grebe."""


@cache
def _decoder(kind: Any) -> Callable[[Any], Any]:
    """Made once a type: reading a long log decodes the same few types again and again."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return _carried
    if origin in (typing.Union, types.UnionType):
        (inner,) = (_decoder(a) for a in arguments if a is not type(None))
        return lambda plain: None if plain is None else inner(plain)
    if origin is tuple:
        item = _decoder(arguments[0])
        return lambda plain: tuple([item(p) for p in _exactly(list, plain)])
    if origin is not None and issubclass(origin, Mapping):
        item = _decoder(arguments[1])
        return lambda plain: {k: item(v) for k, v in _exactly(dict, plain).items()}
    if kind is FileIds:
        return _file_ids
    if kind is Change:
        return _change
    if dataclasses.is_dataclass(kind):
        return _dataclass_decoder(kind)
    if kind is float:
        return lambda plain: float(plain if type(plain) is int else _exactly(float, plain))
    if issubclass(kind, StrEnum):
        return lambda plain: kind(plain)
    return lambda plain: _exactly(kind, plain)


def _exactly(kind: type[Any], plain: Any) -> Any:
    if type(plain) is not kind:
        raise TypeError(f"{kind.__name__} expected, found {type(plain).__name__}")
    return plain


def _carried(plain: Any) -> Any:
    """What the log only carries, once it is known that it can be written again: into every hint and checkpoint."""
    level = [plain]
    for _ in range(_DEEPEST):
        inner: list[Any] = []
        for one in level:
            if type(one) is dict:
                inner += one.values()
            elif type(one) is list:
                inner += one
            elif type(one) is float and not math.isfinite(one):
                raise checks.Refused(f"the number {one}, which no JSON has")
        if not inner:
            return plain
        level = inner
    raise checks.Refused(f"arrays or objects that lie more than {_DEEPEST} deep in each other")


def _lapse(plain: Any) -> float:
    """A promise that makes no sense counts as another one. Nobody has to be kept from reading a log for it."""
    return lapse_of(plain if type(plain) is int else _exactly(float, plain))


_LENIENT: Mapping[tuple[type, str], Callable[[Any], Any]] = {
    (OperationBegun, "heartbeat_seconds"): _lapse,
    (Operation, "heartbeat_seconds"): _lapse,
}
"""Fields that are decoded in a way of their own."""


def _file_ids(plain: Any) -> FileIds:
    return FileIds.of_ranges([(_exactly(int, start), _exactly(int, end)) for start, end in _exactly(list, plain)])


def _dataclass_decoder(kind: Any) -> Callable[[Any], Any]:
    """Every object of the log is checked where it is made: nothing that was read exists unchecked."""
    fields = tuple((name, _LENIENT.get((kind, name)) or _decoder(hint)) for name, hint, _ in _shape(kind))

    def decoded(plain: Any) -> Any:
        made = kind(**{name: decode(plain[name]) for name, decode in fields if name in plain})
        checks.check(made)
        return made

    return decoded


def _change(plain: Any) -> Any:
    kind = _CHANGES.get(plain["change"])
    if kind is None:
        raise _UnknownChange(plain["change"])
    return _decoder(kind)(plain)
