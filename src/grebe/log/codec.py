"""Entries and states as bytes. The only place that knows the JSON of the log.

An object is two lines: the body as one line of JSON, then `{"sha256": "…"}` over exactly the bytes of the first line. A cut, a
flipped bit or foreign bytes therefore never pass for an entry. Checkpoints are the same, compressed by gzip.
The JSON follows the dataclasses field by field: tuples are arrays, a set of file ids is an array of [start, end) pairs, a change
names its class in `"change"`. Fields with their default are left out; fields that a reader does not know are ignored.
"""

import dataclasses
import gzip
import hashlib
import json
import types
import typing
import zlib
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache
from typing import Any

from grebe.errors import CorruptLog, InvalidIndex, Unsupported
from grebe.files import FileIds
from grebe.log import entry as entries
from grebe.log.entry import FORMAT, Change, Entry
from grebe.log.states import TableState

_AS_THEY_ARE = frozenset({str, int, float, bool, type(None)})
_CHANGES: Mapping[str, Any] = {c.__name__: c for c in Change.__subclasses__()}


def encode_entry(entry: Entry) -> tuple[bytes, str]:
    """The bytes of an entry, and its digest."""
    return _seal({"grebe": FORMAT, **_plain(entry)})


def decode_entry(data: bytes, where: str) -> tuple[Entry, str]:
    """The entry and its digest. Raises `CorruptLog`, or `Unsupported` for a newer format."""
    body, digest = _unseal(data, where)
    return _build(Entry, body, where), digest


def encode_state(number: int, entry_digest: str, state: TableState) -> bytes:
    """A checkpoint: the state after entry `number`, whose digest is `entry_digest`."""
    sealed, _ = _seal({"grebe": FORMAT, "number": number, "digest": entry_digest, "state": _plain(state)})
    return gzip.compress(sealed, compresslevel=1, mtime=0)


def decode_state(data: bytes, where: str) -> tuple[int, str, TableState]:
    try:
        sealed = gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise CorruptLog(f"{where} is damaged: {error}", detail="CHECKPOINT") from error
    body, _ = _unseal(sealed, where)
    try:
        return int(body["number"]), str(body["digest"]), _build(TableState, body["state"], where)
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptLog(f"{where} lacks {error}", detail="CHECKPOINT") from error


def _seal(body: Mapping[str, Any]) -> tuple[bytes, str]:
    try:
        line = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidIndex(
            f"what an index remembers about itself must be plain JSON data (text, finite numbers, lists, objects): {error}",
            detail="PROPERTIES",
        ) from error
    digest = hashlib.sha256(line).hexdigest()
    return b'%b\n{"sha256":"%b"}\n' % (line, digest.encode()), digest


def _unseal(data: bytes, where: str) -> tuple[dict[str, Any], str]:
    line, _, seal = data.partition(b"\n")
    digest = hashlib.sha256(line).hexdigest()
    if seal != b'{"sha256":"%b"}\n' % digest.encode():
        raise CorruptLog(
            f"{where} ({len(data)} bytes) is cut short or damaged: its checksum does not fit. Bring the object back from a "
            "backup or an older version of it; if there is none, remove the table's folder under _grebe and create the "
            "indexes anew: no data of the table is in it.",
            detail="CHECKSUM",
        )
    try:
        body = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CorruptLog(f"{where} holds no JSON", detail="FOREIGN") from error
    if not isinstance(body, dict) or not isinstance(body.get("grebe"), int):
        raise CorruptLog(f"{where} is no object of Grebe's log", detail="FOREIGN")
    if body["grebe"] > FORMAT:
        raise Unsupported(
            f"{where} was written in format {body['grebe']}; this Grebe reads up to {FORMAT}. Upgrade Grebe to use the "
            "indexes of this table; until then it is read without them.",
            detail="LOG_FORMAT",
        )
    return body, digest


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
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, Unsupported) as error:
        problem = f"{where} does not have the shape of a log object: {type(error).__name__} {error}"
        raise CorruptLog(problem, detail="SHAPE") from error


class _UnknownChange(Exception):
    """Written by a newer Grebe."""


@cache
def _decoder(kind: Any) -> Callable[[Any], Any]:
    """Made once a type: reading a long log decodes the same few types again and again."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return lambda plain: plain
    if origin in (typing.Union, types.UnionType):
        (inner,) = (_decoder(a) for a in arguments if a is not type(None))
        return lambda plain: None if plain is None else inner(plain)
    if origin is tuple:
        item = _decoder(arguments[0])
        return lambda plain: tuple([item(p) for p in plain])
    if origin is not None and issubclass(origin, Mapping):
        item = _decoder(arguments[1])
        return lambda plain: {k: item(v) for k, v in plain.items()}
    if kind is FileIds:
        return lambda plain: FileIds.of_ranges((int(start), int(end)) for start, end in plain)
    if kind is Change:
        return _change
    if dataclasses.is_dataclass(kind):
        return _dataclass_decoder(kind)
    if kind is float or issubclass(kind, StrEnum):
        return lambda plain: kind(plain)
    return lambda plain: _exactly(kind, plain)


def _exactly(kind: type[Any], plain: Any) -> Any:
    if type(plain) is not kind:
        raise TypeError(f"{kind.__name__} expected, found {type(plain).__name__}")
    return plain


def _dataclass_decoder(kind: Any) -> Callable[[Any], Any]:
    fields = tuple((name, _decoder(hint)) for name, hint, _ in _shape(kind))
    return lambda plain: kind(**{name: decode(plain[name]) for name, decode in fields if name in plain})


def _change(plain: Any) -> Any:
    kind = _CHANGES.get(plain["change"])
    if kind is None:
        raise _UnknownChange(plain["change"])
    return _decoder(kind)(plain)
