"""Compiles java/ into the jars that the package carries: one for Scala 2.12 (Spark 3.5), one for 2.13 (Spark 4).

    python tools/shim.py [2.12|2.13]

The jar is made for the PySpark of the Python that runs this. Needs a JDK 17; users and checkouts need none, since the jars are kept
in the repository, and a test compares them with the sources.
"""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "java"
JARS = ROOT / "src" / "grebe" / "spark" / "jars"
RELEASES = {"2.12": "8", "2.13": "17"}


def spark_jars() -> list[Path]:
    import pyspark

    return sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))


def scala_version() -> str:
    library = next(jar.name for jar in spark_jars() if jar.name.startswith("scala-library-"))
    return ".".join(library.removeprefix("scala-library-").split(".")[:2])


def jar_of(scala: str) -> Path:
    return JARS / f"grebe-spark_{scala}.jar"


def compile_classes(scala: str, into: Path) -> dict[str, bytes]:
    """The compiled classes by their path in the jar."""
    sources = sorted(map(str, SOURCES.rglob("*.java")))
    class_path = ":".join(map(str, spark_jars()))
    command = ["javac", "-nowarn", "-g:source,lines", "--release", RELEASES[scala], "-cp", class_path, "-d", str(into)]
    subprocess.run([*command, *sources], check=True, capture_output=True, text=True)
    return {str(path.relative_to(into)): path.read_bytes() for path in sorted(into.rglob("*.class"))}


def classes_in(jar: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(jar) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name.endswith(".class")}


def main() -> None:
    scala = scala_version()
    with tempfile.TemporaryDirectory() as folder:
        try:
            classes = compile_classes(scala, Path(folder))
        except subprocess.CalledProcessError as failed:
            sys.exit(failed.stderr)
    JARS.mkdir(exist_ok=True)
    with zipfile.ZipFile(jar_of(scala), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in classes.items():
            # A fixed time, so that the same classes make the same jar.
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
    print(f"{jar_of(scala).name}: {len(classes)} classes, {jar_of(scala).stat().st_size} bytes")


if __name__ == "__main__":
    main()
