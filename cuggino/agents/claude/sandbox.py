"""The sandbox of the Claude Code CLI: whether this machine supports it, and its settings.

Observed with the real program (2.1.329, Linux): it wraps each command, not its file tools; the
model may ask to leave it unless `allowUnsandboxedCommands` is false; without its helpers it runs
commands unsandboxed unless `failIfUnavailable` is true. A denied path that does not exist appears
as a device within the sandbox, and nowhere else.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from cuggino.agents.base.agent import SpawnOptions
from cuggino.errors import ProcessError
from cuggino.git import Git
from cuggino.guard import Sandbox
from cuggino.processes import run_bounded

_SEATBELT = "/usr/bin/sandbox-exec"
_HELPERS = ("bwrap", "socat")
_PACKAGES = {"bwrap": "bubblewrap", "socat": "socat"}
_DEVICES = (
    *(".bash_profile", ".bashrc", ".gitconfig", ".gitmodules", ".idea", ".mcp.json", ".profile"),
    *(".ripgreprc", ".vscode", ".zprofile", ".zshrc"),
)
"""Files that the program itself protects in any folder."""

_TRY = (
    *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
    *("--unshare-pid", "--unshare-net", "true"),
)
"""A trial, without `--die-with-parent` for the reason in `cuggino.sandbox.boundary`."""


def sandbox_unavailable(env: Mapping[str, str], *, platform: str = sys.platform) -> str:
    """Return why this machine cannot sandbox commands, or "" if it can.

    On Linux the helpers must be installed and permitted by the system, which containers often do
    not.
    """
    if platform == "darwin":
        return "" if Path(_SEATBELT).exists() else f"{_SEATBELT} is missing"
    if platform != "linux":
        return f"there is none for {platform}"
    path = env.get("PATH")
    missing = [_PACKAGES[name] for name in _HELPERS if shutil.which(name, path=path) is None]
    if missing:
        return f"{' and '.join(missing)} not installed"
    return _tried(str(shutil.which("bwrap", path=path)))


def sandbox_settings(sandbox: Sandbox) -> dict[str, Any]:
    """Return the block `sandbox` of the program's settings.

    The sandbox approves nothing: a sandboxed command still needs the guard's verdict.
    """
    return {
        "enabled": True,
        "failIfUnavailable": True,
        "allowUnsandboxedCommands": False,
        "autoAllowBashIfSandboxed": False,
        "filesystem": {
            "denyWrite": list(sandbox.deny_write),
            "allowWrite": list(sandbox.allow_write),
        },
        # For servers that a command starts itself; on Linux each command has its own network.
        "network": {"allowedDomains": list(sandbox.domains), "allowLocalBinding": True},
    }


def with_sandbox(options: SpawnOptions, env: Mapping[str, str]) -> SpawnOptions:
    """Add the sandbox to the settings if this machine supports it."""
    if options.sandbox is None or sandbox_unavailable(env):
        return options
    block = sandbox_settings(options.sandbox)
    if options.view is not None:
        # It could not mount /proc in a view that root has started; that of the view is private.
        block["enableWeakerNestedSandbox"] = True
    return replace(options, settings={**options.settings, "sandbox": block})


def git_ignores(sandbox: Sandbox, cwd: Path, env: Mapping[str, str]) -> str:
    """Return what git ignores in the sandbox: the user's own ignore file, and the devices.

    `git add --all` would fail on these. Files that exist are not ignored.
    """
    denied = [Path(path) for path in sandbox.deny_write]
    names = [path.name for path in denied if path.parent == cwd.resolve()]
    missing = [name for name in (*_DEVICES, *names) if not os.path.lexists(cwd / name)]
    return _own_ignores(cwd, env) + "".join(f"/{name}\n" for name in dict.fromkeys(missing))


def with_git_ignores(env: Mapping[str, str], file: Path) -> dict[str, str]:
    """Make git read this file instead of the user's own ignore file."""
    count = env.get("GIT_CONFIG_COUNT", "")
    number = int(count) if count.isdecimal() else 0
    return {
        **env,
        f"GIT_CONFIG_KEY_{number}": "core.excludesFile",
        f"GIT_CONFIG_VALUE_{number}": str(file),
        "GIT_CONFIG_COUNT": str(number + 1),
    }


def _own_ignores(cwd: Path, env: Mapping[str, str]) -> str:
    """Return the user's ignore file with a final newline, or "" without one."""
    with suppress(OSError, ProcessError):
        folder = env.get("XDG_CONFIG_HOME") or "~/.config"  # git expands it
        default = f"--default={folder}/git/ignore"
        words = ("config", "--type=path", default, "--get", "core.excludesFile")
        path = Path(Git(cwd=cwd).now(*words, env=env).text)
        return path.read_text(encoding="utf-8", errors="surrogateescape").rstrip("\n") + "\n"
    return ""


@cache
def _tried(bwrap: str) -> str:
    """Return why an empty sandbox does not work, or "" if it does."""
    try:
        done = run_bounded((bwrap, *_TRY), seconds=60)
    except ProcessError as error:
        return f"{bwrap} cannot be run: {error}"
    if done.code == 0:
        return ""
    said = done.errors.strip().splitlines()
    return f"the system does not permit {bwrap}" + (f" ({said[-1]})" if said else "")
