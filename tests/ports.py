"""Ports for servers that a test starts on a port of its choice, or again on the same port."""

from __future__ import annotations

import os
import socket
from contextlib import suppress


def own_port() -> int:
    """Return a free port below those that systems give to connections and to other servers.

    Each process begins to look at another one.
    """
    for port in range(16_000 + os.getpid() % 10_000, 32_000):
        with suppress(OSError), socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")
