"""A bounded cache: what was used last stays, pinned things stay anyway, and a value is made once however many ask."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from grebe.formats.byte_cache import ByteCache


def test_the_least_recently_used_goes_first() -> None:
    cache = ByteCache(30)
    for key in "abc":
        cache.put(key, key.upper(), 10)
    assert cache.get("a") == "A"
    cache.put("d", "D", 10)
    assert [cache.get(key) for key in "abcd"] == ["A", None, "C", "D"]
    assert cache.nbytes == 30


def test_a_value_beyond_the_limit_is_not_kept() -> None:
    cache = ByteCache(30)
    cache.put("a", "A", 10)
    cache.put("b", "B", 31)
    assert (cache.get("a"), cache.get("b"), cache.nbytes) == ("A", None, 10)


def test_what_is_replaced_is_counted_once() -> None:
    cache = ByteCache(30)
    cache.put("a", "A", 10)
    cache.put("a", "B", 20)
    assert (cache.get("a"), cache.nbytes, len(cache)) == ("B", 20, 1)


def test_pinned_values_stay() -> None:
    cache = ByteCache(30)
    cache.put("a", "A", 20, pin=True)
    for key in "bcd":
        cache.put(key, key, 10)
    assert (cache.get("a"), cache.get("b"), cache.get("d")) == ("A", None, "d")
    assert cache.nbytes <= 30


def test_threads_that_ask_at_once_wait_for_one_of_them() -> None:
    cache, started, made = ByteCache(100), threading.Event(), []

    def make() -> str:
        started.wait(5)
        made.append(1)
        return "A"

    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(cache.made, "a", make, len) for _ in range(8)]
        started.set()
        assert [one.result() for one in asked] == ["A"] * 8
    assert made == [1]


def test_a_failure_is_not_kept() -> None:
    cache = ByteCache(100)

    def fail() -> str:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        cache.made("a", fail, len)
    assert cache.made("a", lambda: "A", len) == "A"
