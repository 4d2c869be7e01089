"""A small MCP server for tests with real programs."""

MCP_SERVER = """
import json, sys

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOL = {"name": "put", "inputSchema": SCHEMA}

for line in sys.stdin:
    asked = json.loads(line)
    match asked["method"]:
        case "initialize":
            version = asked["params"]["protocolVersion"]
            server = {"name": "files", "version": "1"}
            told = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
        case "tools/list":
            told = {"tools": [TOOL]}
        case "tools/call":
            path = asked["params"]["arguments"]["path"]
            open(path, "w").write("put")
            told = {"content": [{"type": "text", "text": "it is put"}]}
        case _:
            told = {}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": told}), flush=True)
"""
"""A program whose tool `put` creates the file `path`."""
