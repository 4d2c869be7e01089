"""A client of pyright's language server, which editors ask for what they show."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


class LanguageServer:
    """A running server of a folder."""

    def __init__(self, stdin: IO[bytes], stdout: IO[bytes], folder: Path) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self._folder = folder
        self._sent = 0
        root = folder.as_uri()
        self._ask(
            "initialize",
            processId=None,
            capabilities={"workspace": {"configuration": True}},
            rootUri=root,
            workspaceFolders=[{"uri": root, "name": "folder"}],
        )
        self._send(method="initialized", params={})

    def ask(self, what: str, text: str) -> Any:
        """Return the answer for the position at the end of a file with this text."""
        uri = (self._folder / f"file{self._sent}.py").as_uri()
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self._send(method="textDocument/didOpen", params={"textDocument": document})
        position = {"line": text.count("\n"), "character": len(text.rpartition("\n")[2])}
        return self._ask(f"textDocument/{what}", textDocument={"uri": uri}, position=position)

    def leave(self) -> None:
        """Have the server end itself, and with it the program that has started it."""
        self._ask("shutdown")
        self._send(method="exit")
        self._stdin.close()

    def _ask(self, method: str, **params: Any) -> Any:
        self._sent += 1
        self._send(id=self._sent, method=method, params=params)
        while True:
            message = self._receive()
            if "method" not in message and message.get("id") == self._sent:
                assert "error" not in message, message
                return message["result"]
            if "method" in message and "id" in message:  # the server asks for settings
                configured = {"pythonPath": sys.executable}
                wanted = message["params"].get("items", []) if message.get("params") else []
                self._send(id=message["id"], result=[configured for _ in wanted] or None)

    def _send(self, **message: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._stdin.flush()

    def _receive(self) -> dict[str, Any]:
        length = 0
        while (line := self._stdout.readline().strip()) or not length:
            assert line, "the server has ended"
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        message: dict[str, Any] = json.loads(self._stdout.read(length))
        return message


@contextmanager
def language_server(program: str, folder: Path) -> Iterator[LanguageServer]:
    """Start a server for the folder; end it with the block."""
    with subprocess.Popen(
        [program, "--stdio"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        server = LanguageServer(process.stdin, process.stdout, folder)
        yield server
        server.leave()
