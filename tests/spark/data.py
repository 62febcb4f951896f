"""Small tables for these tests: a key with NULLs and many equal values, and some columns beside it."""

import numpy as np
import pyarrow as pa

KEYS = 400


def rows(count: int, seed: int, keys: int = KEYS) -> pa.Table:
    """k: the key; w: of few values; v: a number of its own; s: text."""
    random = np.random.default_rng(seed)
    key = random.integers(0, keys, count)
    return pa.table(
        {
            "k": pa.array(key, pa.int64(), mask=random.random(count) < 0.03),
            "w": pa.array(random.integers(0, 7, count), pa.int32()),
            "v": pa.array(np.arange(count) + 10_000 * seed, pa.int64()),
            "s": pa.array([f"s{number % 50}" for number in range(count)]),
        }
    )
