"""Values of a column as int64 codes, in Spark's order: a greater value never has a smaller code.

Integers, dates, timestamps, booleans and decimals of up to 18 digits are their own code, floating numbers that of their bits with
the sign put right, wider decimals keep their leading digits, and texts are placed among separators that were sampled from them. For
the last two, different values may share a code: a bound on the column then is an inclusive bound on the code.
"""

import math
import struct
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Context, Decimal
from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grebe.errors import CorruptIndex
from grebe.files.untrusted import decoding, unzstd
from grebe.indexes.sieving.decimals import wide_code, wide_codes
from grebe.indexes.sieving.ranks import LONGEST, MOST_SEPARATORS, OUTER_SEPARATORS, Ranks, shortened
from grebe.predicate.arrow_types import physical_type, to_physical
from grebe.predicate.tree import Value
from grebe.predicate.types import Type

_TEXTS = ("string", "binary")
_DIGITS = 18  # of a decimal that fits int64 whatever its value
_EXACT = Context(prec=200)
_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_MOST_SEPARATOR_BYTES = MOST_SEPARATORS * (LONGEST + 4)
_PACKED = struct.Struct("<II")  # separators, and bytes of all of them


@dataclass(frozen=True, slots=True)
class Keys:
    """The map of one column. `separators` are sorted and distinct, and only texts have them."""

    type: Type
    separators: pa.Array | None = None
    _ranks: Ranks | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if self.type.name in _TEXTS:
            object.__setattr__(self, "_ranks", _unseparated() if self.separators is None else Ranks.of(self.separators))

    @property
    def exact(self) -> bool:
        """Whether different values never share a code."""
        return self.type.name not in _TEXTS and self.type.precision <= _DIGITS

    def codes(self, values: pa.Array) -> NDArray[np.int64]:
        """Of a column as it is stored or in its physical form, without NULLs."""
        wanted = physical_type(self.type)
        plain = values if values.type == wanted else to_physical(values, self.type)
        if self._ranks is not None:
            return self._ranks.codes(plain)
        if self.type.is_decimal:
            words = np.frombuffer(plain.buffers()[1] or b"", np.int64)[2 * plain.offset :][: 2 * len(plain)].reshape(
                -1, 2
            )
            return words[:, 0].copy() if self.exact else wide_codes(words[:, 0], words[:, 1])
        numbers = plain.to_numpy(zero_copy_only=False)
        return _floating(numbers.astype(np.float64)) if self.type.is_floating else numbers.astype(np.int64)

    def code(self, value: Value) -> int:
        """Of a literal in its physical form; what the column's type cannot hold gets the code of its neighbour."""
        if self._ranks is not None:
            # Java, too, writes a question mark for half a character.
            data = value.encode(errors="replace") if isinstance(value, str) else value
            return int(self._ranks.codes(pa.array([data], pa.large_binary()))[0])
        assert isinstance(value, bool | int | float | Decimal)
        if self.type.is_floating:
            return int(_floating(np.array([value], np.float64))[0])
        if self.type.is_decimal:
            scaled = Decimal(value).scaleb(self.type.scale, _EXACT)
            unscaled = int(scaled.to_integral_value(ROUND_FLOOR, _EXACT))
            return _clamped(unscaled) if self.exact else wide_code(unscaled)
        return _clamped(math.floor(value))


@cache
def _unseparated() -> Ranks:
    return Ranks.of(None)


def keys_for(type: Type, separators: pa.Array | None = None) -> Keys | None:
    """None where values of this type have no order that Grebe knows."""
    return Keys(type, separators if type.name in _TEXTS else None) if type.is_scalar and type.name != "void" else None


def separators_of(sample: pa.Array, most: int = 16384) -> pa.Array:
    """At most so many values that part a sample of texts into equal shares, each cut down to what tells it from the one before."""
    texts = sample.drop_null().cast(pa.large_binary())
    ordered = texts.take(pa.compute.sort_indices(texts))
    inner = max(min(most, MOST_SEPARATORS) - OUTER_SEPARATORS, 1)
    if len(ordered) > inner:
        ordered = ordered.take(pa.array(np.linspace(0, len(ordered) - 1, inner).astype(np.int64)))
    return shortened(ordered)


def pack_separators(separators: pa.Array) -> bytes:
    """Their number and length, then (compressed) the length of each and all their bytes."""
    texts = separators.cast(pa.large_binary())
    lengths = np.asarray(pa.compute.binary_length(texts), np.uint32)
    content = lengths.tobytes() + b"".join(texts.to_pylist())
    packed: bytes = pa.compress(content, "zstd", asbytes=True)
    return _PACKED.pack(len(texts), len(content)) + packed


def unpack_separators(data: bytes, type: Type) -> pa.Array:
    """As bytes, for text too: one may end within a character."""
    with decoding(lambda why: _damaged(type, why)):
        count, size = _PACKED.unpack_from(data)
        content = unzstd(data[_PACKED.size :], size, _MOST_SEPARATOR_BYTES)
        if count > MOST_SEPARATORS:
            raise ValueError(f"{count} separators")
        lengths = np.frombuffer(content, np.uint32, count)
        offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
        texts = content[4 * count :]
        if len(texts) != offsets[-1]:
            raise ValueError("texts of another length than they say")
        buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(texts)]
        made = pa.Array.from_buffers(pa.large_binary(), count, buffers)
        if count > 1 and not pa.compute.all(pa.compute.less(made[:-1], made[1:])).as_py():
            raise ValueError("texts that are not in order")
        return made


def _damaged(type: Type, why: str) -> CorruptIndex:
    return CorruptIndex(
        f"the separators of a sieve over a column of type {type} are damaged ({why}); refresh the index with mode='full'",
        detail="SIEVE",
    )


def _floating(numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """IEEE numbers order like integers once the negative ones are turned round; -0.0 is 0.0, and every NaN the greatest of all."""
    one_nan = np.where(np.isnan(numbers), np.nan, numbers + 0.0)
    bits = one_nan.view(np.int64)
    return np.where(bits < 0, bits ^ _GREATEST, bits)


def _clamped(number: int) -> int:
    return max(int(_LEAST), min(int(_GREATEST), number))
