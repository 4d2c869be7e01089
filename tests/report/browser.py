"""A real browser without a window, for looking at a page as a person's browser makes it."""

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
    """What the browser made of a page."""

    dom: str
    """The document after its scripts have run, without the scripts and styles themselves."""
    console: tuple[str, ...]
    """What scripts said, what went wrong in them, and what the page was not allowed to do."""


@dataclass(frozen=True, slots=True)
class Browser:
    """Chromium, driven by its command line; each page has a new profile."""

    program: str

    def show(self, path: Path, *, fragment: str = "", dark: bool = False) -> Shown:
        """Load the file, let its scripts come to rest, and give the document.

        The time of the page is virtual: it does not wait, and stops at a fixed moment.
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
            "--no-sandbox",  # root and containers have none
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            # The browser itself stays at home: it asks nobody for updates, and finds nobody.
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
            # Its helpers are in its group; when all is well there is none of them left.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return subprocess.CompletedProcess(command, process.returncode, output, errors)


def find_browser() -> str | None:
    """The browser of this machine, if it has one of the kind."""
    found = (shutil.which(name) for name in _NAMES)
    on_mac = (path for path in _ON_MAC if Path(path).exists())
    return next((path for path in (*found, *on_mac) if path), None)


@pytest.fixture(scope="session")
def browser() -> Browser:
    """The browser; skips where there is none, but fails on CI, where there must be one."""
    program = find_browser()
    if program is None:
        reason = "no Chromium or Chrome is installed"
        if os.environ.get("CI") == "true":
            pytest.fail(f"the report must be looked at on CI: {reason}")
        pytest.skip(reason)
    return Browser(program)
