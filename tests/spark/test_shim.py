"""The jars that the package carries are what javac makes of java/."""

import shutil
from pathlib import Path

import pytest

from tools import shim

pytestmark = [pytest.mark.core]


@pytest.mark.skipif(shutil.which("javac") is None, reason="needs a JDK; users and checkouts need none")
def test_the_jar_is_made_of_the_sources(tmp_path: Path) -> None:
    scala = shim.scala_version()
    made, kept = shim.compile_classes(scala, tmp_path), shim.classes_in(shim.jar_of(scala))
    assert made.keys() == kept.keys()
    assert [name for name in made if made[name] != kept[name]] == [], "run `python tools/shim.py` with each Spark"
