"""Playwright's MCP server. `python -m tests.browser_tools` lists its tools in the configuration."""

from __future__ import annotations

import json
import re
import subprocess
import textwrap
from pathlib import Path
from typing import cast

from cuggino.config import browser
from cuggino.config.browser import BROWSER_SERVER, PLAYWRIGHT_MCP, UNSAFE
from tests.real_program import CACHE, install

FOLDER = f"playwright-mcp-{PLAYWRIGHT_MCP.rpartition('@')[2]}"
PREFIX = "browser_"


def install_server(cache: Path = CACHE) -> Path:
    """Return the path of the server's program, of the pinned version; see `install`."""
    return install(FOLDER, PLAYWRIGHT_MCP, ".bin/playwright-mcp", cache)


def tools_of(server: Path) -> list[str]:
    """Return the names of the tools that the server offers with the arguments of a run."""
    client = {"name": "tests", "version": "1"}
    begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    asked: list[dict[str, object]] = [
        {"id": 1, "method": "initialize", "params": begin},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]
    lines = [json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in asked]
    _package, *options = cast("list[str]", BROWSER_SERVER["args"])
    with subprocess.Popen(
        [str(server), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(lines))
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.stdin.close()
    return [tool["name"] for tool in answers[1]["result"]["tools"]]


def main() -> None:
    """Replace the list in the module by the tools of the pinned version."""
    tools = [name for name in tools_of(install_server()) if not name.endswith(UNSAFE)]
    verbs = [name.removeprefix(PREFIX) for name in tools]
    path = Path(browser.__file__)
    listed = textwrap.fill(" ".join(sorted(verbs)), 98)
    text = path.read_text(encoding="utf-8")
    text = re.sub(r'_TOOLS = """\n.*?"""', f'_TOOLS = """\n{listed}\n"""', text, flags=re.DOTALL)
    path.write_text(text, encoding="utf-8")
    print(f"{path}: {len(verbs)} tools of {PLAYWRIGHT_MCP}")


if __name__ == "__main__":
    main()
