"""The server in Python that the JVM sends its questions to: an authenticated connection for each thread that asks.

py4j's own callback server lets everyone on this machine call every method of every object that Python ever handed to Java, and
answer in the place of the JVM whatever the called method asks back. So PySpark's is not used: this server has a port and a key of
its own, and a connection on which the other side has not proved that it knows the key never reaches py4j. Behind the proof there
is no pool of objects either, only one function from text to text.

The proof (`AuthenticatedSocketFactory` in Java is the other side): a nonce from each side, then from each side an HMAC-SHA-256 over
both nonces and both ports. The key crosses only on PySpark's authenticated gateway.
"""

import functools
import hashlib
import hmac
import logging
import secrets
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

from grebe import telemetry

_logger = logging.getLogger("grebe.spark")
_LOOPBACK = "127.0.0.1"
_NONCE = 32
_PROOF = 32
_SERVER = b"grebe planner 1 server"
_CLIENT = b"grebe planner 1 client"
_HANDSHAKE_SECONDS = 10.0
_UNPROVED = 64
"""Connections that may be without a proof at a time; the oldest gives way."""
_LONGEST_NAME = 64
_LONGEST_QUESTION = 256 << 20
_LONGEST_ANSWER = 256 << 20
_OBJECT, _METHOD = "planner", "answer"

Answer = Callable[[str], str]


class QuestionServer:
    """Listens on a port of the loopback device for one JVM. `gateway` is PySpark's: what `answer` asks back of the JVM runs in the
    thread of the JVM that waits for the answer."""

    def __init__(self, gateway: Any, answer: Answer) -> None:
        self.key = secrets.token_bytes(32)
        self._gateway = gateway
        self._answer = answer
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._warned = False
        self._unproved: dict[int, socket.socket] = {}
        self._proved: dict[int, socket.socket] = {}
        self._listening = socket.create_server((_LOOPBACK, 0))
        self.port = int(self._listening.getsockname()[1])

    def start(self) -> None:
        threading.Thread(target=self._accept, name="grebe-questions", daemon=True).start()

    def close(self) -> None:
        self._closed.set()
        _close(self._listening)  # wakes the thread that waits in accept()
        with self._lock:
            for accepted in (*self._unproved.values(), *self._proved.values()):
                _close(accepted)

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                accepted, _ = self._listening.accept()
            except OSError:  # closed, or no more files may be open in this process
                self._closed.wait(0.1)
                continue
            self._make_room(accepted)
            threading.Thread(target=self._serve, args=(accepted,), name="grebe-question", daemon=True).start()

    def _make_room(self, accepted: socket.socket) -> None:
        with self._lock:
            while len(self._unproved) >= _UNPROVED:
                _close(self._unproved.pop(next(iter(self._unproved))))
            self._unproved[id(accepted)] = accepted

    def _serve(self, accepted: socket.socket) -> None:
        try:
            proved = _prove(accepted, self.key)
        except OSError:
            proved = False
        with self._lock:
            self._unproved.pop(id(accepted), None)
            if proved:
                self._proved[id(accepted)] = accepted
        if not proved:
            _close(accepted)
            # Said once, so that nobody can fill the log.
            level = logging.DEBUG if self._warned else logging.WARNING
            self._warned = True
            telemetry.event(_logger, level, "connection_refused", port=self.port)
            return
        try:
            _connection_type()(self._gateway, accepted, self._answer).run()
        finally:
            with self._lock:
                self._proved.pop(id(accepted), None)


def _prove(accepted: socket.socket, key: bytes) -> bool:
    """Show that we know the key, and return whether the other side does too."""
    accepted.settimeout(_HANDSHAKE_SECONDS)
    theirs = _exactly(accepted, _NONCE)
    ours = secrets.token_bytes(_NONCE)
    about = theirs + ours + struct.pack(">ii", accepted.getpeername()[1], accepted.getsockname()[1])
    accepted.sendall(ours + _proof(key, _SERVER, about))
    if not hmac.compare_digest(_exactly(accepted, _PROOF), _proof(key, _CLIENT, about)):
        return False
    accepted.settimeout(None)
    # An answer of more than one packet would wait 40 ms for an acknowledgement of the first otherwise.
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return True


def _proof(key: bytes, side: bytes, about: bytes) -> bytes:
    return hmac.digest(key, side + about, hashlib.sha256)


def _exactly(accepted: socket.socket, length: int) -> bytes:
    got = b""
    while len(got) < length:
        more = accepted.recv(length - len(got))
        if not more:
            raise ConnectionResetError("the other side gave up")
        got += more
    return got


def _close(accepted: socket.socket) -> None:
    try:
        accepted.shutdown(socket.SHUT_RDWR)
    except OSError:
        _logger.debug("event=connection_gone_already")
    accepted.close()


@functools.cache
def _connection_type() -> Any:
    """Return the class of proved connections; made at first use, since py4j comes with PySpark, which not everyone has."""
    from py4j import protocol
    from py4j.clientserver import ClientServerConnection, JavaClient, PythonParameters
    from py4j.java_gateway import GatewayProperty, PythonProxyPool

    class Connection(ClientServerConnection):  # type: ignore[misc]  # py4j has no types
        """py4j's connection, with one object of one method behind it instead of a pool."""

        def __init__(self, gateway: Any, accepted: socket.socket, answer: Answer) -> None:
            super().__init__(
                gateway.gateway_parameters,
                PythonParameters(),
                GatewayProperty(gateway.gateway_property.auto_field, PythonProxyPool()),
                gateway._gateway_client,
            )
            self.init_socket_from_python_server(accepted, accepted.makefile("rb"))
            self._answer = answer

        def run(self) -> None:
            if isinstance(self.java_client, JavaClient):  # not where PySpark was told not to pin threads
                self.java_client.set_thread_connection(self)
            self.wait_for_commands()

        def _call_proxy(self, obj_id: str, input: BinaryIO) -> str:
            question = _question(obj_id, input)
            if question is None:  # the other side does not speak our protocol: py4j closes the connection
                raise protocol.Py4JError("only the planner can be called")
            answer = self._answer(question)
            if len(answer) > _LONGEST_ANSWER:
                answer = "!TooLong"
            return str(protocol.RETURN_MESSAGE + protocol.SUCCESS + protocol.get_command_part(answer))

    return Connection


def _question(obj_id: str, input: BinaryIO) -> str | None:
    """Read the call of the one method with its one text."""
    from py4j.protocol import END, STRING_TYPE, unescape_new_line

    method = input.readline(_LONGEST_NAME)
    if (obj_id, method) != (_OBJECT, f"{_METHOD}\n".encode()):
        return None
    text = input.readline(_LONGEST_QUESTION)
    if not (text.startswith(STRING_TYPE.encode()) and text.endswith(b"\n")) or input.readline(2) != f"{END}\n".encode():
        return None
    return str(unescape_new_line(text[len(STRING_TYPE) : -1].decode()))
