"""The smallest server of tools by MCP over standard input and output, for the suite of agents."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

_PROGRAM = """
import json, sys

TOOL = {
    "name": "repeat",
    "description": "Says the words again.",
    "inputSchema": {
        "type": "object",
        "properties": {"words": {"type": "string"}},
        "required": ["words"],
    },
}

for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    given, method = asked.get("params") or {}, asked.get("method")
    with open(sys.argv[1], "a") as log:
        print(method, file=log)
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    if method == "initialize":
        answer["result"] = {
            "protocolVersion": given.get("protocolVersion", "2025-06-18"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "words", "version": "1"},
        }
    elif method == "tools/list":
        answer["result"] = {"tools": [TOOL]}
    elif method == "tools/call":
        words = str((given.get("arguments") or {}).get("words"))
        answer["result"] = {"content": [{"type": "text", "text": words}]}
    elif method == "ping":
        answer["result"] = {}
    else:
        answer["error"] = {"code": -32601, "message": "not known here"}
    print(json.dumps(answer), flush=True)
"""


def servers(log: Path) -> Mapping[str, object]:
    """What a session is given to have it, in the words of `SpawnOptions.mcp_servers`.

    It writes into the log what it is asked, a method a line.
    """
    return {"words": {"command": sys.executable, "args": ["-I", "-c", _PROGRAM, str(log)]}}
