"""Seeded mutations of bytes: what a disk, a half-written upload or an attacker may leave behind."""

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

Mutator = Callable[[random.Random, bytes, Sequence[bytes]], bytes]

_NUMBERS = (
    0,
    1,
    2,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**40,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 1,
)
_VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1,
    2**31,
    2**63,
    -(2**63),
    10**40,
    1.5,
    "",
    "x",
    [],
    {},
    [[]],
    [0, 1],
    {"a": 1},
    "../..",
    [[0, 2**40]],
)
_TOKENS = (
    b"1e400",
    b"NaN",
    b"-Infinity",
    b"Infinity",
    b"[" * 5000,
    b'{"a":' * 5000,
    b'"\\ud800"',
    b"1" * 5000,
    b"\x00",
    b"\xff\xfe",
)


def flip_bits(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    made = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 4, 16))):
        if made:
            made[chance.randrange(len(made))] ^= 1 << chance.randrange(8)
    return bytes(made)


def set_bytes(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    made = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5))):
        if made:
            made[chance.randrange(len(made))] = chance.randrange(256)
    return bytes(made)


def cut(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    place = chance.randrange(len(data) + 1)
    return chance.choice((data[:place], data[place:]))


def remove(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    start = chance.randrange(len(data) + 1)
    return data[:start] + data[start + chance.choice((1, 2, 4, 8, 64)) :]


def repeat(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    start = chance.randrange(len(data) + 1)
    return (
        data[:start] + data[start : start + chance.choice((1, 4, 16, 256))] * chance.choice((2, 3, 50)) + data[start:]
    )


def splice(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    other = chance.choice(others)
    start, length = chance.randrange(len(other) + 1), chance.choice((1, 4, 16, 128, 4096))
    place = chance.randrange(len(data) + 1)
    kept = place if chance.random() < 0.5 else place + length
    return data[:place] + other[start : start + length] + data[kept:]


def set_length(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Write a number of fixed width, as lengths and counts are."""
    width = chance.choice((1, 2, 4, 4, 8, 8))
    place = chance.randrange(len(data) + 1)
    number = chance.choice(_NUMBERS) % (1 << 8 * width)
    return data[:place] + number.to_bytes(width, chance.choice(("little", "big"))) + data[place + width :]


def set_varint(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Replace the number of variable width at some place."""
    place = chance.randrange(len(data) + 1)
    stop = place
    while stop < len(data) and data[stop] >= 128:
        stop += 1
    number, groups = chance.choice(_NUMBERS), bytearray()
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    groups.append(number)
    if chance.random() < 0.05:
        groups = bytearray(b"\xff" * 40) + groups
    return data[:place] + bytes(groups) + data[stop + 1 :]


def fill(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    place, length = chance.randrange(len(data) + 1), chance.choice((4, 16, 256))
    return data[:place] + chance.choice((b"\0", b"\xff", b"\x7f", b"\x19")) * length + data[place + length :]


BINARY: tuple[Mutator, ...] = (
    flip_bits,
    flip_bits,
    set_bytes,
    cut,
    remove,
    repeat,
    splice,
    set_length,
    set_length,
    set_varint,
    set_varint,
    fill,
)


def change_json(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Exchange, remove or double a value somewhere in a document."""
    try:
        whole = json.loads(data)
    except (ValueError, RecursionError):
        return data  # a mutation before this one has put something there that is no JSON, or too deep
    inside = [whole]
    for one in inside:
        below = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        inside += [value for value in below if isinstance(value, dict | list)]
    for _ in range(chance.choice((1, 1, 2, 4))):
        _change(chance, chance.choice(inside))
    return json.dumps(whole, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")


def _change(chance: random.Random, one: Any) -> None:
    if not one:
        return
    if isinstance(one, list):
        place = chance.randrange(len(one))
        match chance.randrange(3):
            case 0:
                one[place] = chance.choice(_VALUES)
            case 1:
                del one[place]
            case _:
                one.append(one[place])
        return
    key = chance.choice(list(one))
    match chance.randrange(4):
        case 0:
            del one[key]
        case 1:
            one["x" + key] = one.pop(key)
        case _:
            one[key] = chance.choice(_VALUES)


def put_token(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    place = chance.randrange(len(data) + 1)
    return data[:place] + chance.choice(_TOKENS) + data[place + chance.choice((0, 1, 4)) :]


TEXT: tuple[Mutator, ...] = (*BINARY, put_token, put_token)
DOCUMENT: tuple[Mutator, ...] = (change_json, change_json, change_json, change_json, put_token, flip_bits, splice, cut)


def mutate(chance: random.Random, data: bytes, others: Sequence[bytes], mutators: Sequence[Mutator] = BINARY) -> bytes:
    """One to three mutations, one after the other."""
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        data = chance.choice(mutators)(chance, data, others)
    return data
