"""Checks that every entry of the maps names a definition that exists, once, and gives it a name that can be one."""

import ast
import sys
from collections import Counter

from tools.rename.definitions import file_of, find, maps


def main(paths: list[str]) -> int:
    faults = 0
    for name, found in maps(paths).items():
        twice = Counter((one["module"], one["name"]) for one in found["symbols"])
        wrong = [
            one
            for one in found["symbols"]
            if twice[one["module"], one["name"]] > 1 or not one["to"].isidentifier() or not _is_there(one)
        ]
        for one in wrong:
            print(f"{name}: {one['module']} {one['name']} -> {one['to']}")
        print(f"{name}: {len(found['symbols'])} symbols, {len(found['modules'])} modules, {len(wrong)} wrong")
        faults += len(wrong)
    return min(faults, 1)


def _is_there(entry: dict[str, str]) -> bool:
    file = file_of(entry["module"])
    return file is not None and find(ast.parse(file.read_text()), entry["name"]) is not None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
