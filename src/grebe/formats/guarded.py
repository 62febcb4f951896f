"""Decoders in processes of their own: bytes that crash, hang or bloat a decoder end that process, not this one.

A process is started with the first request and serves one request at a time; it is kept for the next one, and replaced once it
died. It gets bytes of one file and the names of columns, and an environment of a few harmless variables: no path, no store, no
credential. It ends when its standard input does, so it never outlives this process. A fork starts its own.
"""

import atexit
import contextlib
import inspect
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from grebe.errors import GrebeError, UnreadableFile
from grebe.files.arrow_stream import read_stream
from grebe.files.untrusted import FOREIGN
from grebe.formats import orc_decoder
from grebe.formats.orc_decoder import BYTES, ERROR, FRAME, MEMORY, NEED, READY, REQUEST, SPAN, TABLE, UNREADABLE, Ask

_PROCESSES = min(4, os.cpu_count() or 1)
_START_SECONDS = 60.0
_BYTES_A_SECOND, _TIMES_THE_FILE = 1024 * 1024, 64
_INHERITED = ("CONDA_PREFIX", "DYLD_LIBRARY_PATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "TZ", "TZDIR")
"""Variables that libraries need to be found, and that ORC needs for its time zones."""
_SET = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2", "OMP_NUM_THREADS": "1"}
_STARTER = "import sys; sys.path += sys.argv[3:]; exec(sys.argv[1]); exec(sys.argv[2])"
# Arrow goes without NumPy since version 18, and starts three times as fast then.
_WITHOUT_NUMPY = "sys.modules['numpy'] = None" if int(pa.__version__.partition(".")[0]) >= 18 else ""
_TOO_MUCH = "; the setting guard_decoders=false decodes files that are trusted without limits"
_LATE = "did not answer in time"


class DecoderDied(Exception):
    """A decoder ended, or did not answer in time."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may take: seconds of the processor (and one more for each MiB), so many times as long by the clock, and
    memory (at least: 64 times the size of the file)."""

    seconds: int = 10
    waits: float = 6.0
    memory: int = 512 * 1024**2


class DecoderProcess:
    """One guarded process. It is used by one thread at a time, and no more after a `DecoderDied`."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        ours, theirs = socket.socketpair()
        folders = {str(Path(str(module.__file__)).parent.parent) for module in (pa, np)}
        command = [sys.executable, "-I", "-S", "-c", _STARTER, _WITHOUT_NUMPY, inspect.getsource(orc_decoder)]
        try:
            with theirs:
                self.process = subprocess.Popen(
                    [*command, *sorted(folders)],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    env={name: os.environ[name] for name in _INHERITED if name in os.environ} | _SET,
                    start_new_session=True,
                )
        except BaseException:
            ours.close()
            raise
        self._socket = ours
        self._ready = False

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def wait_until_ready(self) -> None:
        if not self._ready:
            self._socket.settimeout(_START_SECONDS)
            kind, _ = self._receive(0)
            if kind != READY:
                raise DecoderDied("did not start")
            self._ready = True

    def decode(self, request: orc_decoder.Request, ask: Ask) -> tuple[bytes, memoryview]:
        """Return the kind of the last frame, and its content. Raises `DecoderDied`, and nothing of `ask`."""
        given = sum(len(data) for _, data in request.spans)
        seconds = self._limits.seconds + given // _BYTES_A_SECOND
        memory = max(self._limits.memory, _TIMES_THE_FILE * request.size)
        head = json.dumps(
            {
                "size": request.size,
                "memory": memory,
                "seconds": seconds,
                "stripes": list(request.stripes),
                "names": list(request.names),
                "spans": [(start, len(data)) for start, data in request.spans],
            }
        ).encode()
        self._socket.settimeout(self._limits.waits * seconds)
        self._send(REQUEST, struct.pack("<I", len(head)), head, *(data for _, data in request.spans))
        while True:
            kind, content = self._receive(memory)
            if kind != NEED or len(content) != SPAN.size:
                return kind, content
            try:
                found = ask(*SPAN.unpack(content))
            except GrebeError:
                self._send(UNREADABLE)
            else:
                self._send(BYTES, found)

    def end(self) -> None:
        """Close its input, which ends it, or kill it if that takes too long."""
        self._socket.close()
        try:
            self.process.wait(1.0)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> str:
        """Kill it and return how it ended, in words."""
        self._socket.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(0.2)  # one that has died says of what
        died = self.process.returncode
        self.process.kill()
        self.process.wait()
        if died is None:
            return _LATE
        try:
            return f"was ended by {signal.Signals(-died).name}" if died < 0 else f"ended with code {died}"
        except ValueError:
            return f"was ended by signal {-died}"

    def forget(self) -> None:
        """Let go of it after a fork: it is a child of another process."""
        self._socket.close()
        self.process.returncode = 0

    def _send(self, kind: bytes, *parts: bytes | memoryview) -> None:
        try:
            self._socket.sendall(FRAME.pack(kind, sum(map(len, parts))))
            for part in parts:
                self._socket.sendall(part)
        except TimeoutError as problem:
            raise DecoderDied(_LATE) from problem
        except OSError as problem:
            raise DecoderDied from problem

    def _receive(self, most: int) -> tuple[bytes, memoryview]:
        kind, length = FRAME.unpack(self._exactly(FRAME.size))
        if length > most:
            raise DecoderDied("sent more than it may")
        return kind, self._exactly(length)

    def _exactly(self, length: int) -> memoryview:
        made, done = memoryview(pa.allocate_buffer(length)).cast("B"), 0
        while done < length:
            try:
                count = self._socket.recv_into(made[done:])
            except TimeoutError as problem:
                raise DecoderDied(_LATE) from problem
            except OSError as problem:
                raise DecoderDied from problem
            if not count:
                raise DecoderDied
            done += count
        return made


class DecoderPool:
    """The guarded processes of this process."""

    def __init__(self, processes: int = _PROCESSES, limits: Limits = Limits()) -> None:  # noqa: B008 - it is frozen
        self._processes, self._limits = processes, limits
        self.reset()

    def reset(self) -> None:
        self._lock = threading.Lock()
        self._free = threading.BoundedSemaphore(self._processes)
        self._idle: list[DecoderProcess] = []
        self._all: set[DecoderProcess] = set()

    @property
    def all(self) -> Sequence[DecoderProcess]:
        return tuple(self._all)

    def warm(self) -> None:
        """Start a process if there is none, without waiting for it."""
        if not self._all:
            with contextlib.suppress(DecoderDied), self.taken():
                pass

    @contextlib.contextmanager
    def taken(self) -> Iterator[DecoderProcess]:
        """A process for one request; killed if that does not end well."""
        with self._free:
            process = self._take()
            try:
                yield process
            except BaseException:
                with self._lock:
                    self._all.discard(process)
                if process.process.returncode is None:
                    process.kill()
                raise
            with self._lock:
                self._idle.append(process)

    def end(self) -> None:
        with self._lock:
            ended, self._idle, self._all = self._all, [], set()
        for process in ended:
            process.end()

    def forget(self) -> None:
        """In a fork: these are processes of another one, whose sockets must not stay open here."""
        for process in self._all:
            process.forget()
        self.reset()

    def _take(self) -> DecoderProcess:
        with self._lock:
            while self._idle:
                process = self._idle.pop()
                if process.alive:
                    return process
                self._all.discard(process)
                process.end()
            try:
                process = DecoderProcess(self._limits)
            except OSError as problem:
                raise DecoderDied(type(problem).__name__) from problem
            self._all.add(process)
            return process


POOL = DecoderPool()
atexit.register(POOL.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOL.forget)


def decode_guarded(request: orc_decoder.Request, ask: Ask, uri: str, pool: DecoderPool = POOL) -> pa.Table:
    """Decode in a guarded process. Raises `UnreadableFile` for bytes that it cannot decode, or that end it."""
    try:
        with pool.taken() as process:
            started = False
            try:
                process.wait_until_ready()
                started = True
                kind, content = process.decode(request, ask)
            except DecoderDied as died:
                raise _unreadable(uri, started, str(died) or process.kill()) from died
    except DecoderDied as problem:
        raise _not_started(uri, str(problem)) from problem
    if kind == TABLE:
        try:
            return read_stream(content, any_text=True)
        except FOREIGN as problem:
            raise UnreadableFile(
                f"what was decoded of {uri} is no table ({type(problem).__name__}); the file is damaged", detail="ORC"
            ) from problem
    if kind == MEMORY:
        raise UnreadableFile(
            f"{uri} takes far more memory to decode than its size lets expect{_TOO_MUCH}", detail="ORC"
        )
    reason = bytes(content).decode(errors="replace") if kind == ERROR else "the decoder answered with nonsense"
    raise UnreadableFile(f"{uri} is no ORC file that can be read: {reason}", detail="ORC")


def _unreadable(uri: str, started: bool, how: str) -> UnreadableFile:
    if not started:
        return _not_started(uri, how)
    rest = _TOO_MUCH if how == _LATE or "XCPU" in how else ""
    return UnreadableFile(
        f"{uri} is no ORC file that can be read: the process that decoded it {how}, so the file is damaged or forged{rest}",
        detail="ORC",
    )


def _not_started(uri: str, why: str) -> UnreadableFile:
    return UnreadableFile(
        f"{uri} cannot be read: the process that decodes ORC did not start ({why}). Look whether {sys.executable} can be run here; "
        "the setting guard_decoders=false decodes files that are trusted without it",
        detail="ORC",
    )
