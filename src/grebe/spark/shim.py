"""Loads the Java part into a running Spark, and holds the one object that Python calls.

The jar comes with the package, one for each of Scala's lines. The driver loads it through a class loader of its own unless Spark
was started with it (`spark.jars`); executors get it as any other jar of the session.
"""

import logging
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from grebe import telemetry
from grebe.errors import Unsupported
from grebe.spark.question_server import Answer, QuestionServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_logger = logging.getLogger("grebe.spark")
_BRIDGE = "grebe.spark.Bridge"
_LOCK = threading.Lock()
_BRIDGES: "dict[int, Shim]" = {}
_CLASSES: dict[int, Any] = {}
"""By gateway: py4j remembers the methods of a class by its name, so that a JVM must not load it twice."""


class _Planner:
    """Answers the questions of the rule: text in, text out. An empty text means: leave the plan as it is."""

    def __init__(self) -> None:
        self.answer: Answer = lambda question: ""

    def __call__(self, question: str) -> str:
        try:
            return self.answer(question)
        except Exception as problem:  # a fault of ours must not reach the query: the plan stays as it is
            last = traceback.extract_tb(problem.__traceback__)[-1]
            where = f"{PurePath(last.filename).name}:{last.lineno}"
            telemetry.event(_logger, logging.WARNING, "planning_failed", error=type(problem).__name__, where=where)
            # The text of somebody else's exception may hold a value of the query.
            _logger.debug("event=planning_trace", exc_info=problem)
            return "!" + type(problem).__name__


class Shim:
    """The Java part in one JVM."""

    def __init__(self, bridge: Any, planner: _Planner, server: QuestionServer, gateway: Any, context: Any) -> None:
        self.bridge = bridge
        self.context = context
        self.gateway = gateway
        self.server = server
        self._planner = planner
        self.planning: Any = None
        """What answers, once a session is attached; see `attaching`."""

    def java_list(self, items: Sequence[str]) -> Any:
        made = self.gateway.jvm.java.util.ArrayList()
        for item in items:
            made.add(item)
        return made

    def answer_with(self, answer: Answer) -> None:
        self._planner.answer = answer


def jar_for(scala: str) -> Path:
    jar = Path(__file__).parent / "jars" / f"grebe-spark_{scala}.jar"
    if not jar.is_file():
        raise Unsupported(
            f"this Spark is built with Scala {scala}; Grebe has jars for 2.12 (Spark 3.5) and 2.13 (Spark 4)",
            detail="SCALA_VERSION",
        )
    return jar


def load(session: "SparkSession") -> Shim:
    """The Java part of the JVM that this session runs in; loaded once."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    gateway = SparkContext._gateway
    if context is None or gateway is None:
        raise Unsupported(
            "this session has no JVM in this process (a remote Spark Connect server?); attach to it where Spark runs",
            detail="NO_JVM",
        )
    with _LOCK:
        # A Python process has one gateway, but tests and notebooks stop and start contexts in it.
        key = id(context)
        if key not in _BRIDGES:
            for stopped in _BRIDGES.values():
                stopped.server.close()
            _BRIDGES.clear()
            _BRIDGES[key] = _loaded(context, gateway)
        return _BRIDGES[key]


def _loaded(context: Any, gateway: Any) -> Shim:
    jvm = gateway.jvm
    scala = ".".join(jvm.scala.util.Properties.versionNumberString().split(".")[:2])
    cls = _bridge_class(context, jvm, gateway, jar_for(scala))
    planner = _Planner()
    server = QuestionServer(gateway, planner)
    server.start()
    arguments = jvm.java.util.ArrayList()
    for argument in (gateway.java_gateway_server, server.port, server.key):
        arguments.add(argument)
    bridge = cls.getConstructors()[0].newInstance(arguments.toArray())
    return Shim(bridge, planner, server, gateway, context)


def _bridge_class(context: Any, jvm: Any, gateway: Any, jar: Path) -> Any:
    """Already there if Spark was started with the jar; else from a loader of ours. Executors are told of the jar."""
    from py4j.protocol import Py4JJavaError

    parent = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    if "grebe-spark" not in context._jsc.sc().listJars().mkString(" "):
        # Also where it is on the driver's class path alone: tasks read and write index files through it.
        context._jsc.addJar(str(jar))
    try:
        return parent.loadClass(_BRIDGE)
    except Py4JJavaError as problem:
        if "ClassNotFoundException" not in str(problem.java_exception):
            raise
    if id(gateway) not in _CLASSES:
        urls = gateway.new_array(jvm.java.net.URL, 1)
        urls[0] = jvm.java.io.File(str(jar)).toURI().toURL()
        _CLASSES[id(gateway)] = jvm.java.net.URLClassLoader(urls, parent).loadClass(_BRIDGE)
    return _CLASSES[id(gateway)]
