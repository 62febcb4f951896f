"""Texts as codes: the rank among sampled separators, and within it the place between the two separators around.

All texts between two separators begin with what these have in common, so that the next seven bytes tell most of them apart,
however long the common beginning is. They are spread evenly between the two; as separators are quantiles, codes are spread evenly.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

MOST_SEPARATORS = (1 << 15) - 1
OUTER_SEPARATORS = 2  # that `shortened` adds
_PLACE_BITS = 48
_PLACE_BYTES = 7
_WORD = 8
LONGEST = 1024  # separators that only differ further on are one


@dataclass(frozen=True, slots=True)
class _Texts:
    """An Arrow array of texts as numpy sees it. `words[i]` are the eight bytes from place i on."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    words: NDArray[np.uint64]

    @classmethod
    def of(cls, texts: pa.Array) -> "_Texts":
        _, offsets, data = texts.buffers()
        places = (
            np.frombuffer(offsets, np.int64)[texts.offset :][: len(texts) + 1] if len(texts) else np.zeros(1, np.int64)
        )
        first, last = int(places[0]), int(places[-1])
        padded = np.zeros(last - first + _WORD, np.uint8)
        if last > first:
            padded[:-_WORD] = np.frombuffer(data, np.uint8)[first:last]
        words = np.ndarray((len(padded) - _WORD + 1,), ">u8", padded, strides=(1,))
        return cls(places[:-1] - first, places[1:] - first, words)

    def word(self, at: NDArray[np.int64] | int) -> NDArray[np.uint64]:
        """Eight bytes of each text from a place in it on, zeros behind its end."""
        begin = self.starts + at
        missing = np.clip(begin + _WORD - self.ends, 0, _WORD)
        found = self.words[np.minimum(begin, self.ends)].astype(np.uint64)
        shift = (np.minimum(missing, _WORD - 1) * 8).astype(np.uint64)
        return np.where(missing < _WORD, found >> shift << shift, np.uint64(0))

    def lengths(self) -> NDArray[np.int64]:
        return self.ends - self.starts

    def pick(self, which: slice) -> "_Texts":
        return _Texts(self.starts[which], self.ends[which], self.words)


@dataclass(frozen=True, slots=True)
class Ranks:
    """Separators, prepared. Interval i lies between the separators i - 1 and i and holds the latter."""

    separators: pa.Array
    prefix: bytes  # of all separators
    heads: NDArray[np.uint64]  # the eight bytes of each separator after the prefix
    common: NDArray[np.int64]  # length of what both ends of an interval begin with
    floor: NDArray[np.uint64]  # the seven bytes after that of the lower end
    scale: NDArray[np.float64]

    @classmethod
    def of(cls, separators: pa.Array | None) -> "Ranks":
        texts = pa.array([], pa.large_binary()) if separators is None else separators.cast(pa.large_binary())
        if len(texts) > MOST_SEPARATORS:
            raise ValueError(f"{len(texts)} separators are more than {MOST_SEPARATORS}")
        seen = _Texts.of(texts)
        lower, upper = seen.pick(slice(None, -1)), seen.pick(slice(1, None))
        shared = _common_lengths(lower, upper)
        common = np.concatenate(([0], shared, [0])) if len(texts) else np.zeros(1, np.int64)
        floor = np.concatenate(([np.uint64(0)], seen.word(common[1:]) >> np.uint64(8)))
        most = np.uint64((1 << 8 * _PLACE_BYTES) - 1)
        ceiling = np.concatenate((seen.word(common[:-1]) >> np.uint64(8), [most]))
        scale = float(1 << _PLACE_BITS) / ((ceiling - floor).astype(np.float64) + 1.0)
        length = int(shared.min()) if len(shared) else 0
        prefix = texts[0].as_py()[:length] if length else b""
        return cls(texts, prefix, seen.word(length), common, floor, scale)

    def codes(self, values: pa.Array) -> NDArray[np.int64]:
        texts = values.cast(pa.large_binary())
        seen = _Texts.of(texts)
        ranks = self._ranks(texts, seen.word(len(self.prefix)))
        place = seen.word(self.common[ranks]) >> np.uint64(8)
        spread = (place - self.floor[ranks]).astype(np.float64) * self.scale[ranks]
        within = np.minimum(spread.astype(np.int64), (1 << _PLACE_BITS) - 1)
        return (ranks << _PLACE_BITS) + within

    def _ranks(self, texts: pa.Array, heads: NDArray[np.uint64]) -> NDArray[np.int64]:
        """How many separators are less than each text, of which `heads` are the eight bytes where the prefix ends."""
        low = np.searchsorted(self.heads, heads, "left")
        high = np.searchsorted(self.heads, heads, "right")
        if self.prefix:
            beginning = pc.binary_slice(texts, 0, len(self.prefix))
            before = np.asarray(pc.less(beginning, self.prefix))
            behind = np.asarray(pc.greater(beginning, self.prefix))
            low = np.where(before, 0, np.where(behind, len(self.heads), low))
            high = np.where(before, 0, np.where(behind, len(self.heads), high))
        # Few are left as a rule: those that share eight bytes with a separator. What they have beyond all separators is not copied.
        left = np.flatnonzero(low < high)
        if len(left):
            longest = int(pc.max(pc.binary_length(self.separators)).as_py())
            low[left] = self._sought(pc.binary_slice(texts.take(pa.array(left)), 0, longest + 1), low[left], high[left])
        return low

    def _sought(self, texts: pa.Array, low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.int64]:
        """The same between two bounds each, by halving."""
        left = np.arange(len(texts))
        while len(left):
            middle = (low[left] + high[left]) // 2
            less = np.asarray(pc.less(self.separators.take(pa.array(middle)), texts.take(pa.array(left))))
            low[left[less]] = middle[less] + 1
            high[left[~less]] = middle[~less]
            left = left[low[left] < high[left]]
        return low


def shortened(ordered: pa.Array) -> pa.Array:
    """Sorted texts cut down to what tells each from the one before and some bytes more, those that become equal once.

    What they all begin with comes before them, and behind them the next that does not: texts further out than any sampled one most
    likely begin so, too.
    """
    if not len(ordered):
        return ordered
    texts = _Texts.of(ordered)
    shared = _common_lengths(texts.pick(slice(None, -1)), texts.pick(slice(1, None)))
    needed = np.append(shared[0] if len(shared) else 0, shared) + _WORD
    length = np.minimum(needed, np.minimum(texts.lengths(), LONGEST))
    cut = [text[:n] for text, n in zip(ordered.to_pylist(), length.tolist(), strict=True)]
    prefix = cut[0][: int(shared.min(initial=len(cut[0])))]
    stem = prefix.rstrip(b"\xff")
    behind = {stem[:-1] + bytes([stem[-1] + 1])} if stem else set()
    return pa.array(sorted({prefix, *cut, *behind}), pa.large_binary())


def _common_lengths(left: _Texts, right: _Texts) -> NDArray[np.int64]:
    """How many leading bytes two texts share, for each pair; not counted beyond the longest that matters."""
    shorter = np.minimum(np.minimum(left.lengths(), right.lengths()), LONGEST)
    shared = np.zeros(len(shorter), np.int64)
    open_ = shared < shorter
    at = 0
    while open_.any():
        differing = left.word(at) ^ right.word(at)
        same = np.where(differing == 0, _WORD, _leading_zero_bytes(differing))
        shared[open_] = at + same[open_]
        open_ &= same == _WORD
        at += _WORD
        open_ &= at < shorter
    return np.minimum(shared, shorter)


def _leading_zero_bytes(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    bounds = np.uint64(1) << np.arange(0, 64, 8, dtype=np.uint64)
    return 8 - np.searchsorted(bounds, words, "right").astype(np.int64)
