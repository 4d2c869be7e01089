"""The default browser of the deliver loop's agents: Playwright's MCP server (AUT-230).

This is the only place that names its version. After a change of it, `python -m tests.browser_tools`
asks the server for its tools and writes them below.
"""

from __future__ import annotations

from collections.abc import Mapping

PLAYWRIGHT_MCP = "@playwright/mcp@0.0.83"
"""The npm package of the server."""

BROWSER_SERVER: Mapping[str, object] = {
    "command": "npx",
    "args": [PLAYWRIGHT_MCP, "--headless", "--isolated", "--output-dir", ".cuggino/browser"],
}
"""The server's entry among MCP servers; npx downloads it once.

Its snapshots and screenshots are stored where commits and fingerprints ignore them.
"""

_TOOLS = """
click close console_messages drag drop emulate_media evaluate file_upload fill_form find
handle_dialog hover navigate navigate_back network_request network_requests press_key resize
select_option snapshot tabs take_screenshot type wait_for
"""

BROWSER_TOOLS = tuple(f"mcp__playwright__browser_{verb}" for verb in _TOOLS.split())
"""The tools of the server, with the names that agents use.

`browser_run_code_unsafe` is left out: it runs any code in the server's process, bypassing the guard
and the sandbox. A project can add it with `allowedTools`.
"""

UNSAFE = "_unsafe"
"""The suffix of the names of tools that are left out."""
