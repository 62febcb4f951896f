"""`python -m bench._rivals.worker PACKAGES NAME`: reads calls as lines of JSON, carries them out, answers each by one line."""

import importlib
import json
import os
import sys


def main() -> None:
    packages, name = sys.argv[1:]
    sys.path.insert(0, packages)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # Whatever a rival prints, be it from native code, must not mix with the answers.
    os.dup2(2, 1)
    contestant = importlib.import_module(f"bench._rivals.{name}").Contestant()
    for line in sys.stdin:
        verb, arguments = json.loads(line)
        answers.write(json.dumps(getattr(contestant, verb)(**arguments)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
