"""`python -m bench NAME [--scale small|full] [--part PART…] [--json FILE]`."""

import argparse
import importlib
import pkgutil
from pathlib import Path

import bench
from bench.harness import Report, Scale

_NOT_A_BENCH = {"__main__", "harness"}


def names() -> list[str]:
    """The benchmarks: every module of this package that is not the runner; a leading underscore marks a part of one."""
    found = (module.name for module in pkgutil.iter_modules(bench.__path__))
    return sorted(name for name in found if name not in _NOT_A_BENCH and not name.startswith("_"))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=bench.__doc__)
    parser.add_argument("name", metavar="NAME", nargs="?", help=f"one of: {', '.join(names())}")
    parser.add_argument("--scale", type=Scale, choices=list(Scale), default=Scale.SMALL)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go as well, as a JSON array")
    parser.add_argument(
        "--part", action="append", default=[], help="of a benchmark in parts, just this; may be repeated"
    )
    asked = parser.parse_args(arguments)
    if asked.name not in names():
        parser.error(f"give one of these names: {', '.join(names())}")
    chosen = importlib.import_module(f"bench.{asked.name}")
    parts = list(getattr(chosen, "PARTS", ()))
    if not set(asked.part) <= set(parts):
        parser.error(f"parts of {asked.name}: {', '.join(parts) or 'none'}")

    report = Report(asked.name)
    try:
        chosen.run(asked.scale, report, *([asked.part] if asked.part else []))
    finally:
        # A benchmark that breaks off keeps what it has measured.
        if asked.json is not None:
            report.write(asked.json)


if __name__ == "__main__":
    main()
