"""The hash by which Spark spreads rows over buckets: Murmur3 with seed 42, of one value.

Known here, so that `key = 7` opens the files of one bucket only. Spark hashes a NULL to the seed itself. Floating point numbers are
left out: which bit patterns are one value differs between versions of Spark.
"""

from decimal import Context, Decimal

from grebe.predicate.tree import Literal

SEED = 42
_MASK = 0xFFFFFFFF
_AS_INT = {"boolean", "tinyint", "smallint", "int", "date"}
_AS_LONG = {"bigint", "timestamp", "timestamp_ntz"}
_LONG_DIGITS = 18
_EXACT = Context(prec=80)


def bucket_of(literal: Literal, buckets: int) -> int | None:
    """The bucket of rows whose only bucket column has this value; None if that is not known."""
    hashed = hash_of(literal)
    return None if hashed is None else hashed % buckets


def hash_of(literal: Literal) -> int | None:
    """As Spark's `hash(value)`: a signed number of 32 bits."""
    value, kind = literal.value, literal.type
    if value is None:
        return SEED
    if isinstance(value, str):
        return _hash_bytes(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, bytes):
        return _hash_bytes(value)
    if isinstance(value, Decimal):
        unscaled = int(_EXACT.scaleb(value, kind.scale))
        if kind.precision <= _LONG_DIGITS:
            return _hash_long(unscaled)
        return _hash_bytes(unscaled.to_bytes(_bytes_needed(unscaled), "big", signed=True))
    if kind.name in _AS_INT:
        return _finish(_mix(SEED, int(value) & _MASK), 4)
    if kind.name in _AS_LONG:
        return _hash_long(int(value))
    return None


def _bytes_needed(number: int) -> int:
    """The fewest bytes of two's complement, as Java's BigInteger writes itself."""
    return (number if number >= 0 else ~number).bit_length() // 8 + 1


def _hash_long(value: int) -> int:
    return _finish(_mix(_mix(SEED, value & _MASK), value >> 32 & _MASK), 8)


def _hash_bytes(data: bytes) -> int:
    """Spark mixes in the bytes after the last whole word one by one, each as a signed number: not as others do."""
    words = len(data) - len(data) % 4
    state = SEED
    for start in range(0, words, 4):
        state = _mix(state, int.from_bytes(data[start : start + 4], "little"))
    for byte in data[words:]:
        state = _mix(state, (byte - 256 if byte > 127 else byte) & _MASK)
    return _finish(state, len(data))


def _mix(state: int, word: int) -> int:
    word = _rotated(word * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    return (_rotated(state ^ word, 13) * 5 + 0xE6546B64) & _MASK


def _rotated(number: int, by: int) -> int:
    return (number << by | number >> (32 - by)) & _MASK


def _finish(state: int, length: int) -> int:
    state ^= length
    state = (state ^ state >> 16) * 0x85EBCA6B & _MASK
    state = (state ^ state >> 13) * 0xC2B2AE35 & _MASK
    state ^= state >> 16
    return state - (1 << 32) if state >= 1 << 31 else state
