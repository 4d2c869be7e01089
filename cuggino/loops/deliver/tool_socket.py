"""The deliverable tools in the process of the run, called through a Unix socket.

An agent and its MCP servers may not write `.autonoe/status.json`; this process does it for them,
on every system, so that it knows what the file must hold.
"""

from __future__ import annotations

import json
import os
import socketserver
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from cuggino.errors import CugginoError, StorageError

Call = Callable[[str, Mapping[str, object]], Mapping[str, object]]

SOCKET = "tools"
"""Name of the socket in its folder."""

_LONGEST = 1_000_000
_DESCRIPTORS = Path("/proc/self/fd")


class ToolSocket:
    """A server of one session. Each connection carries one call and its answer, a line each."""

    def __init__(self, folder: Path, call: Call) -> None:
        """Start to listen in the folder.

        The address of a socket may be much shorter than a path. Where a folder has no other name,
        the socket is in a private folder with a short one.

        Raises:
            StorageError: the socket cannot be created.
        """
        self._private = not _DESCRIPTORS.is_dir()
        try:
            if self._private:
                folder = Path(tempfile.mkdtemp(prefix="cuggino-"))
            folder.mkdir(parents=True, exist_ok=True)
            self.path = folder / SOCKET
            self.path.unlink(missing_ok=True)
            self._folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            address = self.path if self._private else _DESCRIPTORS / f"{self._folder}" / SOCKET
            self._server = _Server(str(address), call)
        except OSError as error:
            raise StorageError(
                "serve tools", f"no socket for the deliverable tools: {error.strerror or error}"
            ) from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="cuggino-tools", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening; calls that have begun are answered first."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        os.close(self._folder)
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
            if self._private:
                self.path.parent.rmdir()


class _Server(socketserver.ThreadingUnixStreamServer):
    def __init__(self, address: str, call: Call) -> None:
        self.call = call
        super().__init__(address, _Connection)


class _Connection(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        try:
            asked = json.loads(self.rfile.readline(_LONGEST))
            answer: Mapping[str, object] = {
                "answer": self.server.call(str(asked["tool"]), dict(asked["input"]))
            }
        except CugginoError as error:
            answer = {"error": error.message, "hint": error.hint}
        except Exception as error:  # told to the agent, which goes on
            answer = {"failure": f"{type(error).__name__}: {error}"}
        with suppress(OSError):
            self.wfile.write(json.dumps(answer).encode() + b"\n")
