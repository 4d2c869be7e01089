"""A headless browser that shows a page as a person's browser would."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_ON_MAC = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
_TIMEOUT = 110


@dataclass(frozen=True, slots=True)
class Shown:
    """The result of loading a page."""

    dom: str
    """The document after its scripts have run, without scripts and styles."""
    console: tuple[str, ...]
    """Console output, script errors and blocked requests."""


@dataclass(frozen=True, slots=True)
class Browser:
    """Chromium, driven by its command line; each page has a new profile."""

    program: str

    def show(self, path: Path, *, fragment: str = "", dark: bool = False) -> Shown:
        """Load the file, let its scripts settle, and return the document.

        The page's time is virtual: it does not wait, and stops at a fixed time.
        """
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            address = path.resolve().as_uri() + (f"#{fragment}" if fragment else "")
            ran = self._run(
                f"--user-data-dir={profile}",
                f"--blink-settings=preferredColorScheme={0 if dark else 1}",
                "--dump-dom",
                address,
            )
        console = [
            line.partition("] ")[2] for line in ran.stderr.splitlines() if ":CONSOLE" in line
        ]
        assert ran.returncode == 0, ran.stderr[-2000:]
        dom = re.sub(r"<(script|style)\b.*?</\1>", "", ran.stdout, flags=re.DOTALL)
        return Shown(dom, tuple(console))

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [
            self.program,
            "--headless=new",
            "--no-sandbox",  # unavailable to root and in containers
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            # No updates and no other network access of the browser itself.
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--enable-logging=stderr",
            "--virtual-time-budget=20000",
            "--window-size=1200,1600",
            *arguments,
        ]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        try:
            output, errors = process.communicate(timeout=_TIMEOUT)
        finally:
            # Its helpers are in its process group; normally none is left.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return subprocess.CompletedProcess(command, process.returncode, output, errors)


def find_browser() -> str | None:
    """Return the installed Chromium-like browser, if any."""
    found = (shutil.which(name) for name in _NAMES)
    on_mac = (path for path in _ON_MAC if Path(path).exists())
    return next((path for path in (*found, *on_mac) if path), None)


@pytest.fixture(scope="session")
def browser() -> Browser:
    """Return the browser; skip without one, but fail on CI, which requires it."""
    program = find_browser()
    if program is None:
        reason = "no Chromium or Chrome is installed"
        if os.environ.get("CI") == "true":
            pytest.fail(f"the report must be looked at on CI: {reason}")
        pytest.skip(reason)
    return Browser(program)
