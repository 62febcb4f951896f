"""Only the JVM of the session can ask the planner anything, and only the planner is asked."""

import hashlib
import hmac
import os
import pwd
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import grebe
from grebe.spark.question_server import QuestionServer
from tests.project.tree import ROOT
from tests.spark.data import rows
from tests.spark.served import Served, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("spark questions")]

ATTACK = """
import socket, sys
STATEMENT = 's7 {"statement": "DROP INDEX by_k ON parquet.`%s`", "what": "run"}' % sys.argv[1]
LINES = ["c\\n%s\\n%s\\n%s\\ne\\n" % (target, method, STATEMENT)
         for target in ("p0", "p1", "planner", "t") for method in ("apply", "answer", "__class__")]
for port in map(int, sys.argv[2:]):
    for said in ["A\\nwrong\\ne\\n", *LINES, "x" * 64 + "\\n" + LINES[0], "m\\nd\\np0\\ne\\n"]:
        with socket.create_connection(("127.0.0.1", port), 5) as one:
            one.settimeout(5)
            got = b""
            try:
                one.sendall(said.encode())
                one.shutdown(socket.SHUT_WR)
                while more := one.recv(4096):
                    got += more
                    one.sendall(b"!yv\\n")
            except OSError:
                pass
            print(port, len(got), got[:1] == b"!" or b"\\n!" in got, flush=True)
"""


def _listening(process: int | str) -> list[int]:
    """The TCP ports that a process of this machine listens on."""
    sockets = {str(link.readlink()) for link in Path(f"/proc/{process}/fd").iterdir() if link.is_symlink()}
    lines = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/{process}/net/{name}").read_text().splitlines()[1:]
    ]
    return [int(line[1].split(":")[1], 16) for line in lines if line[3] == "0A" and f"socket:[{line[9]}]" in sockets]


def _of_pyspark(session: "SparkSession", gateway: Any) -> set[int]:
    """Ports of PySpark's own in this process: for accumulators, and for callbacks once a test has run a stream."""
    accumulators = session.sparkContext._accumulatorServer.server_address
    callbacks = getattr(gateway, "_callback_server", None)
    return {
        *([accumulators[1]] if isinstance(accumulators, tuple) else []),
        *([callbacks.get_listening_port()] if callbacks is not None else []),
    }


def _as_somebody_else(program: str, *arguments: str) -> str:
    user = {"user": pwd.getpwnam("nobody").pw_uid, "group": pwd.getpwnam("nobody").pw_gid} if os.getuid() == 0 else {}
    ran = subprocess.run(
        ["/usr/bin/env", "python3", "-I", "-c", program, *arguments],
        capture_output=True,
        text=True,
        cwd="/",
        check=False,
        timeout=120,
        **user,  # type: ignore[call-overload]
    )
    assert ran.returncode == 0, ran.stderr
    return str(ran.stdout)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="finds the ports of a process by /proc")
def test_whoever_connects_from_outside_reaches_nothing(served: Served, folder: Path) -> None:
    place = write(folder / "guarded", rows(200, 1))
    served.lake.table(place).create(grebe.Covering("by_k", on="k", include=["v"], buckets=2))
    shim = served.lake._spark._shim
    ports = [port for port in _listening("self") if port not in _of_pyspark(served.spark, shim.gateway)]
    assert shim.server.port in ports
    said = _as_somebody_else(ATTACK, place, *map(str, ports))
    assert len(said.splitlines()) >= 15 * len(ports)
    for line in said.splitlines():
        port, length, replied = line.split()
        if int(port) == shim.server.port:  # the nonce and the proof are random bytes: their length is what tells
            assert int(length) in {0, 64}, "at most a nonce and a proof come back"
        else:
            assert replied == "False", line
    assert [index.state for index in served.lake.table(place).indexes()] == ["ACTIVE"]
    served.view("guarded", place)
    served.same("SELECT sum(v) FROM guarded WHERE k = 7", "by_k")


def test_nothing_of_ours_is_among_the_objects_that_py4j_hands_out(served: Served) -> None:
    pool = served.lake._spark._shim.gateway.gateway_property.pool
    assert [one for one in pool.dict.values() if type(one).__module__.startswith("grebe")] == []


PROGRAM = """
import sys
from pathlib import Path
import grebe
from grebe.spark import shim
from testbed.spark import SHORT_LIVED, spark_session
from tests.spark.test_question_server import _listening

first, folder = sys.argv[1], Path(sys.argv[2])
def stream(spark, turn):
    got = []
    def batch(frame, number):
        got.extend(row.id for row in frame.sparkSession.read.parquet(str(folder / "t")).where("id = 7").collect())
    query = (spark.readStream.schema("id BIGINT").parquet(str(folder / "t")).writeStream.foreachBatch(batch)
             .option("checkpointLocation", str(folder / f"checkpoint{turn}")).trigger(availableNow=True).start())
    query.awaitTermination()
    assert set(got) == {7}, got

for turn in range(2):
    with spark_session(folder / str(turn), SHORT_LIVED) as spark:
        if turn == 0:
            spark.range(100).coalesce(1).write.parquet(str(folder / "t"))
            if first == "stream":
                stream(spark, "before")
        lake = grebe.attach(spark)
        assert lake._spark._shim.server.port in _listening("self")
        assert lake._spark._shim.server.port != getattr(spark.sparkContext._gateway.get_callback_server(), "port", None)
        if turn == 0:
            lake.table(str(folder / "t")).create(grebe.Lookup("by_id", on="id"))
        asked = eval(lake._spark._shim.bridge.counters())["asked"]
        stream(spark, turn)
        after = eval(lake._spark._shim.bridge.counters())
        assert after["asked"] > asked and after["failed"] == 0, after
        assert spark.newSession().read.parquet(str(folder / "t")).where("id = 8").collect()[0].id == 8
        assert eval(lake._spark._shim.bridge.counters())["asked"] > after["asked"]
assert len([port for port in _listening("self")]) <= 2  # PySpark's and ours: that of the session before is closed
print("done")
"""


@pytest.mark.parametrize("first", ["stream", "attach"])
def test_callbacks_of_streams_and_questions_do_not_meet(first: str, tmp_path: Path) -> None:
    """In a process of its own: PySpark starts its callback server once. A restarted Spark gets a server of its own."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, first, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        timeout=240,
    )
    assert ran.stdout.splitlines()[-1:] == ["done"], ran.stderr[-3000:]


IMPOSTOR = """
import socket, sys, threading
from pathlib import Path
import grebe
from grebe.spark import shim
from testbed.spark import SHORT_LIVED, spark_session

folder, heard = Path(sys.argv[1]), []
impostor = socket.create_server(("127.0.0.1", 0))
def listen():
    while True:
        one, _ = impostor.accept()
        got = b""
        try:
            one.sendall(b"\\0" * 64)
            while more := one.recv(4096):
                got += more
        except OSError:
            pass
        heard.append(got)
threading.Thread(target=listen, daemon=True).start()
class Elsewhere(shim.QuestionServer):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.port = impostor.getsockname()[1]
shim.QuestionServer = Elsewhere
with spark_session(folder / "spark", SHORT_LIVED) as spark:
    spark.range(100).write.parquet(str(folder / "t"))
    lake = grebe.attach(spark)
    assert [row.id for row in spark.read.parquet(str(folder / "t")).where("id = 7").collect()] == [7]
    counters = eval(lake._spark._shim.bridge.counters())
    assert counters["failed"] > 0 and "not the planner" in counters["last_failure"], counters
assert heard and {len(one) for one in heard} == {32}, heard
print("done")
"""


def test_the_jvm_tells_nothing_to_somebody_else_on_the_port(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", IMPOSTOR, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        timeout=240,
    )
    assert ran.stdout.splitlines()[-1:] == ["done"], ran.stderr[-3000:]


class _Gateway:
    """A gateway whose JVM is not there: enough for connections on which nothing is asked back."""

    def __init__(self) -> None:
        from py4j.java_gateway import GatewayParameters, GatewayProperty, PythonProxyPool

        self.gateway_parameters = GatewayParameters()
        self.gateway_property = GatewayProperty(False, PythonProxyPool())
        self._gateway_client = None


@contextmanager
def _server() -> Iterator[QuestionServer]:
    with closing(QuestionServer(_Gateway(), lambda question: question[::-1])) as made:
        made.start()
        yield made


def _connected(port: int, key: bytes, claimed: int | None = None) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), 5)
    nonce = b"n" * 32
    made.sendall(nonce)
    got = made.recv(64, socket.MSG_WAITALL)
    about = nonce + got[:32] + struct.pack(">ii", claimed or made.getsockname()[1], port)
    made.sendall(hmac.digest(key, b"grebe planner 1 client" + about, hashlib.sha256))
    return made


def _asked(connection: socket.socket, command: str) -> bytes:
    connection.sendall(command.encode())
    try:
        return connection.makefile("rb").readline()
    except OSError:
        return b""


def test_the_one_method_answers_and_any_other_call_ends_the_connection() -> None:
    with _server() as server:
        with _connected(server.port, server.key) as good:
            assert _asked(good, "c\nplanner\nanswer\nsabc\ne\n") == b"!yscba\n"
            assert _asked(good, "c\nplanner\nanswer\nsx\\ny\ne\n") == b"!ysy\\nx\n"
        for command in (
            "c\nplanner\n__init__\nsabc\ne\n",
            "c\nplanner\n__class__\ne\n",
            "c\np0\nanswer\nsabc\ne\n",
            "c\nt\nanswer\nsabc\ne\n",
            "c\nplanner\nanswer\nsabc\nsabc\ne\n",
            "c\nplanner\nanswer\nro12\ne\n",
            f"c\nplanner\n{'answer' * 100}\nsabc\ne\n",
        ):
            with _connected(server.port, server.key) as other:
                assert _asked(other, command) == b"", command


@pytest.mark.parametrize("length", [0, 31, 32])
def test_a_wrong_key_is_refused(length: int) -> None:
    with _server() as server, _connected(server.port, b"k" * length) as other:
        assert _asked(other, "c\nplanner\nanswer\nsabc\ne\n") == b""


def test_a_proof_that_was_made_for_another_connection_is_refused() -> None:
    """Whoever relays the bytes of the two sides has a port of his own."""
    with _server() as server, _connected(server.port, server.key, claimed=1) as other:
        assert _asked(other, "c\nplanner\nanswer\nsabc\ne\n") == b""


def test_connections_without_a_proof_do_not_keep_others_out() -> None:
    with _server() as server:
        silent = [socket.create_connection(("127.0.0.1", server.port), 5) for _ in range(200)]
        try:
            with _connected(server.port, server.key) as good:
                assert _asked(good, "c\nplanner\nanswer\nsabc\ne\n") == b"!yscba\n"
            assert len(server._unproved) <= 64
        finally:
            for one in silent:
                one.close()
