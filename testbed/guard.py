"""Runs one program and kills it when this process's standard input closes, that is when the parent stops it or dies in any way.

Called as `guard.py FOLDER PROGRAM ARGUMENT…`; FOLDER, the program's scratch space, is removed then.
"""

import os
import shutil
import subprocess
import sys
import threading


def main() -> None:
    folder, *command = sys.argv[1:]
    program = subprocess.Popen(command, stdin=subprocess.DEVNULL, cwd=folder)
    stopping = threading.Event()

    def leave_with_program() -> None:
        code = program.wait()
        if not stopping.is_set():
            # Ended by itself: the folder stays, for the parent to read what it said.
            os._exit(code if code >= 0 else 1)

    threading.Thread(target=leave_with_program, daemon=True).start()
    while os.read(0, 4096):
        pass
    stopping.set()
    # Nothing of a test server is worth an orderly end.
    program.kill()
    program.wait()
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
