"""Jars by Maven coordinates, fetched once into the cache by the Ivy that comes with Spark.

Where Ivy looks is Ivy's own default; `GREBE_IVY_SETTINGS` may name a settings file of the user's for a mirror.
"""

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

from grebe.spark.java import find_java
from grebe.store.own_folder import cache_folder

_COORDINATES_OF_S3A = Path(__file__).with_name("s3a_jars.txt")
_LAKES = {
    "4.1": (
        "io.delta:delta-spark_4.1_2.13:4.4.0",
        "io.delta:delta-storage:4.4.0",
        "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    ),
    "3.5": ("org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0",),
}
"""By the version of Spark."""


@functools.cache
def spark_jars() -> Path:
    """The folder of the jars that PySpark brings."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "jars"


def spark_jar(name: str) -> Path:
    """PySpark's own jar of that name, whatever its version."""
    (found,) = spark_jars().glob(f"{name}-[0-9]*.jar")
    return found


def hadoop_version() -> str:
    return spark_jar("hadoop-client-api").stem.removeprefix("hadoop-client-api-")


def minicluster_jars() -> list[Path]:
    """HDFS as one jar; what it needs besides comes with PySpark."""
    return fetch([f"org.apache.hadoop:hadoop-client-minicluster:{hadoop_version()}"], transitive=False)


def knows_s3a() -> bool:
    """Whether `s3a_jars` fit this Spark: they are chosen for Hadoop 3.4, each other wants another AWS SDK."""
    return hadoop_version().startswith("3.4.")


def s3a_jars() -> list[Path]:
    """What Spark needs for s3a://, some ten megabytes, instead of the AWS SDK's bundle of 640. None for another Hadoop."""
    if not knows_s3a():
        return []
    fixed = _COORDINATES_OF_S3A.read_text().split()
    return fetch([f"org.apache.hadoop:hadoop-aws:{hadoop_version()}", *fixed], transitive=False)


def lake_jars() -> list[Path]:
    """The lake formats that have a runtime for this Spark."""
    return fetch(_LAKES[spark_version()], transitive=False) if spark_version() in _LAKES else []


def spark_version() -> str:
    """Major and minor."""
    return ".".join(spark_jar("spark-core_2.1[23]").stem.rpartition("-")[2].split(".")[:2])


def fetch(coordinates: Sequence[str], *, transitive: bool = True, excludes: Sequence[str] = ()) -> list[Path]:
    """The jars of `group:artifact:version`, with what they depend on if `transitive`, less the `group:artifact` of `excludes`."""
    root = cache_folder() / "maven"
    root.mkdir(parents=True, exist_ok=True)
    request = json.dumps([sorted(coordinates), transitive, sorted(excludes)])
    receipt = root / f"{hashlib.sha256(request.encode()).hexdigest()[:20]}.json"
    with _locked(root / "lock"):
        if receipt.exists():
            jars = [root / "jars" / name for name in json.loads(receipt.read_text())]
            if all(jar.exists() for jar in jars):
                return jars
        names = _download(root, _ivy_file(coordinates, transitive, excludes))
        draft = receipt.with_suffix(".draft")
        draft.write_text(json.dumps(names))
        draft.replace(receipt)
    return [root / "jars" / name for name in names]


def _download(root: Path, ivy_file: str) -> list[str]:
    """Has Ivy fetch into a fresh folder, then moves each whole jar to its place. The names of the jars."""
    jars = root / "jars"
    jars.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root) as scratch:
        work = Path(scratch)
        (work / "ivy.xml").write_text(ivy_file)
        settings = os.environ.get("GREBE_IVY_SETTINGS")
        command: list[str | Path] = [
            find_java().home / "bin" / "java",
            # POMs without jars in a user's local repository would otherwise be taken for the real thing.
            f"-Duser.home={work}",
            "-cp",
            os.pathsep.join(str(spark_jar(name)) for name in ("ivy", "commons-cli")),
            "org.apache.ivy.Main",
            *(["-settings", settings] if settings else []),
            *("-ivy", str(work / "ivy.xml"), "-cache", str(root / "ivy-cache")),
            *("-retrieve", f"{work}/jars/[organisation]_[artifact]-[revision].[ext]"),
        ]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        fetched = sorted((work / "jars").glob("*.jar"))
        if run.returncode != 0 or not fetched:
            raise RuntimeError(f"Ivy could not fetch the jars:\n{run.stdout[-3000:]}\n{run.stderr[-2000:]}")
        for jar in fetched:
            jar.replace(jars / jar.name)
        return [jar.name for jar in fetched]


def _ivy_file(coordinates: Sequence[str], transitive: bool, excludes: Sequence[str]) -> str:
    def attributes(coordinate: str, *names: str) -> str:
        return " ".join(f"{n}={quoteattr(v)}" for n, v in zip(names, coordinate.split(":"), strict=True))

    left_out = "".join(f"<exclude {attributes(one, 'org', 'module')}/>" for one in excludes)
    needed = "".join(
        f'<dependency {attributes(one, "org", "name", "rev")} conf="default->{"default" if transitive else "master"}"/>'
        for one in coordinates
    )
    return (
        '<ivy-module version="2.0"><info organisation="grebe" module="testbed"/><configurations><conf name="default"/>'
        f"</configurations><dependencies>{needed}{left_out}</dependencies></ivy-module>"
    )


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds the lock on a file against every other process; the kernel frees it if we die."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
