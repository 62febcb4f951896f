"""A language server asked for renames, one after the other, over its standard input and output."""

import itertools
import json
import os
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

CONFIGURATION = "pyrightconfig.json"


class LanguageServer:
    def __init__(self, root: Path, folders: tuple[str, ...]) -> None:
        self._root = root
        settings = {"include": list(folders), "extraPaths": ["src", "."], "typeCheckingMode": "off"}
        (root / CONFIGURATION).write_text(json.dumps(settings))
        command = [str(Path(sys.executable).parent / "basedpyright-langserver"), "--stdio"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root)
        self._numbers = itertools.count(1)
        self._waiting: dict[int, queue.Queue[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        self._opened: set[str] = set()
        threading.Thread(target=self._listen, daemon=True).start()
        folder = {"uri": root.as_uri(), "name": root.name}
        workspace = {"configuration": True, "workspaceFolders": True, "workspaceEdit": {"documentChanges": True}}
        parameters = {
            "processId": os.getpid(),
            "rootUri": root.as_uri(),
            "workspaceFolders": [folder],
            "capabilities": {"workspace": workspace},
        }
        self._call("initialize", parameters)
        self._notify("initialized", {})
        time.sleep(2)

    def rename(self, file: Path, line: int, column: int, to: str) -> dict[str, list[dict[str, Any]]]:
        """Return the edits by the URI of each file. Raises `RuntimeError` where the server refuses."""
        uri = file.as_uri()
        if uri not in self._opened:
            document = {"uri": uri, "languageId": "python", "version": 1, "text": file.read_text()}
            self._notify("textDocument/didOpen", {"textDocument": document})
            self._opened.add(uri)
        at = {"line": line, "character": column}
        answer = self._call("textDocument/rename", {"textDocument": {"uri": uri}, "position": at, "newName": to}) or {}
        found = {key: list(edits) for key, edits in (answer.get("changes") or {}).items()}
        for change in answer.get("documentChanges") or []:
            found.setdefault(change["textDocument"]["uri"], []).extend(change["edits"])
        return found

    def close(self) -> None:
        self._process.kill()
        (self._root / CONFIGURATION).unlink()

    def _call(self, method: str, parameters: dict[str, Any]) -> Any:
        number = next(self._numbers)
        answers = self._waiting[number] = queue.Queue()
        self._send({"id": number, "method": method, "params": parameters})
        answer = answers.get(timeout=600)
        if "error" in answer:
            raise RuntimeError(answer["error"].get("message"))
        return answer["result"]

    def _notify(self, method: str, parameters: dict[str, Any]) -> None:
        self._send({"method": method, "params": parameters})

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
            self._process.stdin.flush()

    def _listen(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        while True:
            length = 0
            while line := stream.readline().strip():
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            if not length:
                return
            message = json.loads(stream.read(length))
            if "id" in message and "method" in message:
                items = message.get("params", {}).get("items", [])
                result: list[dict[str, Any]] | None = (
                    [{} for _ in items] if message["method"] == "workspace/configuration" else None
                )
                self._send({"id": message["id"], "result": result})
            elif "id" in message:
                self._waiting[message["id"]].put(message)
