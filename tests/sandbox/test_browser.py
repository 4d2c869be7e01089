"""Playwright with Chromium in the views of roles, as root and as another user."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuggino.sandbox import ViewRole
from tests.report.browser import Browser, browser
from tests.sandbox.arena import Arena, enclosed_as_other, needs_bubblewrap, needs_visible

__all__ = ["browser"]

_SCRIPT = """
const {{ chromium }} = require({playwright});
(async () => {{
    const options = {{ executablePath: {program}, chromiumSandbox: {sandbox} }};
    const started = await chromium.launch(options);
    const page = await started.newPage();
    await page.setContent('<title>Seen</title><p id="sum"></p>');
    await page.evaluate(() => {{ document.getElementById('sum').textContent = 6 * 7; }});
    await page.screenshot({{ path: 'shot.png' }});
    console.log(await page.title(), await page.textContent('#sum'));
    await started.close();
}})();
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Provide a folder that every user can reach, unlike those of pytest."""
    with tempfile.TemporaryDirectory(prefix="views-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        yield Path(name).resolve()


@pytest.mark.parametrize("role", ["implementing", "reviewing"])
@pytest.mark.parametrize("user", ["root", "other"])
def test_playwright(
    role: ViewRole, user: str, browser: Browser, playwright_server: Path, open_folder: Path
) -> None:
    """A page is shown, by an ordinary user in the browser's own sandbox, too."""
    needs_visible(playwright_server)
    boundary = needs_bubblewrap(open_folder)
    if role == "reviewing" and not boundary.overlay:
        pytest.skip(f"the project is read-only: {boundary.reason}")
    arena = Arena(open_folder / "arena")
    packages = next(p for p in playwright_server.parents if p.name == "node_modules")
    script = _SCRIPT.format(
        playwright=json.dumps(str(packages / "playwright-core")),
        program=json.dumps(browser.program),
        sandbox=json.dumps(user == "other"),
    )
    (arena.project / "browse.js").write_text(script)
    if user == "root":
        done = arena.run(boundary, role, "node browse.js")
    else:
        done = arena.run_in(enclosed_as_other(arena, role), "node browse.js")
    assert (0, "Seen 42\n") == (done.returncode, done.stdout), done.stderr[-2000:]
    assert (role == "implementing") == (arena.project / "shot.png").exists()
