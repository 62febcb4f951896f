"""Redis as a key-value store: filled by commands sent ahead of their answers, or one by one."""

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import redis

from bench._rivals import pairs

_LIKE_USERS = 1_000
"""Commands in one pipeline of the client."""


class Contestant:
    def connect(self, port: int) -> None:
        self._port = port
        self._client = redis.Redis(port=port)

    def empty(self) -> None:
        self._client.flushall()

    def mass(self, source: str, key: str) -> float:
        """All keys by the bare protocol, nobody waiting for an answer until the end: the fastest way there is."""
        start = time.perf_counter()
        with socket.create_connection(("127.0.0.1", self._port)) as link, ThreadPoolExecutor(1) as pool:
            answered = pool.submit(_drain, link)
            for part in pairs.located(source, key):
                keys, values = part["key"].to_pylist(), part["value"].to_pylist()
                link.sendall(b"".join(map(_set, keys, values)))
            link.sendall(b"*2\r\n$4\r\nECHO\r\n$4\r\ndone\r\n")
            answered.result()
        return time.perf_counter() - start

    def pipeline(self, source: str, key: str, count: int) -> float:
        """The first `count` keys through pipelines of the client."""
        start = time.perf_counter()
        for part in pairs.located(source, key, count):
            keys, values = part["key"].to_pylist(), part["value"].to_pylist()
            for first in range(0, len(keys), _LIKE_USERS):
                with self._client.pipeline(transaction=False) as together:
                    for one, value in zip(keys[first : first + _LIKE_USERS], values[first:], strict=False):
                        together.set(one, value)
                    together.execute()
        return time.perf_counter() - start

    def one_by_one(self, source: str, key: str, count: int) -> float:
        start = time.perf_counter()
        for part in pairs.located(source, key, count):
            for one, value in zip(part["key"].to_pylist(), part["value"].to_pylist(), strict=True):
                self._client.set(one, value)
        return time.perf_counter() - start

    def load_rows(self, source: str, key: str, columns: list[str]) -> int:
        for keys, values in pairs.rows(source, key, columns):
            self._client.mset(dict(zip(keys, values, strict=True)))
        return int(self._client.dbsize())

    def get(self, column: str, values: list[int], columns: list[str] | None) -> tuple[list[float], int]:
        seconds, rows = [], 0
        for value in values:
            start = time.perf_counter()
            found = self._client.get(str(value))
            if found is not None:
                json.loads(found)
                rows += 1
            seconds.append(time.perf_counter() - start)
        return seconds, rows


def _set(key: int, value: int) -> bytes:
    one, other = b"%d" % key, b"%d" % value
    return b"*3\r\n$3\r\nSET\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n" % (len(one), one, len(other), other)


def _drain(link: socket.socket) -> None:
    last = b""
    while not last.endswith(b"done\r\n"):
        received = link.recv(1 << 20)
        if not received or b"-" in received:
            # So that whoever sends does not wait for ever.
            link.shutdown(socket.SHUT_RDWR)
            raise RuntimeError(f"Redis refused a command or hung up: {received[:200]!r}")
        last = (last + received)[-16:]
