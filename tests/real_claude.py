"""The real Claude Code CLI for tests: installed once, and run with nothing of this machine's own.

It speaks to a `tests.model_server.ModelServer` only: no key, no network, no model.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from filelock import FileLock

from cuggino.agents.claude.sandbox import sandbox_unavailable

VERSION = "2.1.329"
PACKAGE = f"@anthropic-ai/claude-code@{VERSION}"
CACHE = Path(__file__).resolve().parent.parent / ".cache" / "agents"
_INSTALL_TIMEOUT = 600


def install_claude(cache: Path = CACHE) -> Path:
    """The path of the `claude` program; installs it on the first call (about 400 MB).

    Safe to call from several processes at once: one installs, into a folder that is moved to its
    place when it is complete.

    Raises:
        FileNotFoundError: npm is not there.
        RuntimeError: the installation failed; the message ends with what npm said.
    """
    place = cache / f"claude-code-{VERSION}"
    program = place / "node_modules" / ".bin" / "claude"
    if program.exists():
        return program
    npm = shutil.which("npm")
    if npm is None:
        raise FileNotFoundError("npm is needed to install the Claude Code CLI")
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / f"claude-code-{VERSION}.lock", timeout=_INSTALL_TIMEOUT):
        if program.exists():
            return program
        with tempfile.TemporaryDirectory(dir=cache, prefix=".installing-") as folder:
            prefix = Path(folder) / "package"
            _npm_install(npm, prefix)
            shutil.rmtree(place, ignore_errors=True)
            prefix.rename(place)
    return program


def _npm_install(npm: str, prefix: Path) -> None:
    prefix.mkdir()
    done = subprocess.run(
        [npm, "install", "--no-fund", "--no-audit", "--prefix", str(prefix), PACKAGE],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=_INSTALL_TIMEOUT,
        check=False,
    )
    program = prefix / "node_modules" / ".bin" / "claude"
    if done.returncode != 0 or not program.exists():
        raise RuntimeError(f"npm could not install {PACKAGE}: {done.stderr.strip()[-2000:]}")


@pytest.fixture(scope="session")
def claude_cli() -> Path:
    """The program; skips where it cannot be installed, but fails on CI, where it must be there."""
    try:
        return install_claude()
    except (FileNotFoundError, RuntimeError, subprocess.TimeoutExpired) as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"the real agent must be tested on CI: {error}")
        pytest.skip(str(error))


def needs_sandbox() -> None:
    """Skip where the system does not let a sandbox work; on CI its programs must be there."""
    why = sandbox_unavailable(os.environ)
    if why and os.environ.get("CI") == "true" and "not let" not in why:
        pytest.fail(f"the sandbox must be tested on CI: {why}")
    if why:
        pytest.skip(f"no sandbox on this machine: {why}")


def clean_env(home: Path, base_url: str) -> dict[str, str]:
    """The whole environment of a run: `home` is its own, `base_url` is the only place it calls.

    `IS_SANDBOX=1` lets root bypass permissions, as in a container; it is not a sandbox.
    """
    folders = {
        "HOME": home,
        "CLAUDE_CONFIG_DIR": home / ".claude",
        "CLAUDE_CODE_TMPDIR": home / "tmp",
        "TMPDIR": home / "tmp",
    }
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    return {
        **{name: str(folder) for name, folder in folders.items()},
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "ANTHROPIC_API_KEY": "dummy-not-a-key",
        "ANTHROPIC_BASE_URL": base_url,
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "IS_SANDBOX": "1",
    }
