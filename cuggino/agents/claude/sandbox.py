"""The sandbox of the Claude Code CLI: whether it can be had here, and how it is ordered.

Measured on the real program (2.1.329, Linux): it wraps each command, not its file tools; the model
may ask to leave it unless `allowUnsandboxedCommands` is false; without its helpers it runs
commands in the open unless `failIfUnavailable` is true. A denied path that does not exist shows up
as a device within the sandbox, and nowhere else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from cuggino.agents.protocol import SpawnOptions
from cuggino.security.sandbox import Sandbox

_SEATBELT = "/usr/bin/sandbox-exec"
_HELPERS = ("bwrap", "socat")
_PACKAGES = {"bwrap": "bubblewrap", "socat": "socat"}
_DEVICES = (
    *(".bash_profile", ".bashrc", ".gitconfig", ".gitmodules", ".idea", ".mcp.json", ".profile"),
    *(".ripgreprc", ".vscode", ".zprofile", ".zshrc"),
)
"""What the program denies to write by itself, wherever it works."""

_TRY = (
    *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
    *("--unshare-pid", "--unshare-net", "--die-with-parent", "true"),
)


def sandbox_unavailable(env: Mapping[str, str], *, platform: str = sys.platform) -> str:
    """Why the program could not sandbox its commands on this machine; empty when it could.

    On Linux the helpers must be installed, and be let by the system: a container often does not.
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
    """The block `sandbox` of the program's settings.

    It answers for nothing by itself: a command that runs in it needs the guard's word as well.
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
        # Servers that a command starts and asks itself; on Linux each command has its own network.
        "network": {"allowedDomains": list(sandbox.domains), "allowLocalBinding": True},
    }


def with_sandbox(options: SpawnOptions, env: Mapping[str, str]) -> SpawnOptions:
    """The options, in whose settings is the sandbox that this machine can hold."""
    if options.sandbox is None or sandbox_unavailable(env):
        return options
    block = sandbox_settings(options.sandbox)
    return replace(options, settings={**options.settings, "sandbox": block})


def git_ignores(sandbox: Sandbox, cwd: Path, env: Mapping[str, str]) -> str:
    """What git is to ignore within the sandbox: what the user's own file says, and the devices.

    `git add --all` would fail over these. What is really there is not ignored.
    """
    denied = [Path(path) for path in sandbox.deny_write]
    names = [path.name for path in denied if path.parent == cwd.resolve()]
    missing = [name for name in (*_DEVICES, *names) if not os.path.lexists(cwd / name)]
    return _own_ignores(cwd, env) + "".join(f"/{name}\n" for name in dict.fromkeys(missing))


def with_git_ignores(env: Mapping[str, str], file: Path) -> dict[str, str]:
    """The environment, in which git reads the file in the place of the user's own."""
    count = env.get("GIT_CONFIG_COUNT", "")
    number = int(count) if count.isdecimal() else 0
    return {
        **env,
        f"GIT_CONFIG_KEY_{number}": "core.excludesFile",
        f"GIT_CONFIG_VALUE_{number}": str(file),
        "GIT_CONFIG_COUNT": str(number + 1),
    }


def _own_ignores(cwd: Path, env: Mapping[str, str]) -> str:
    """The content of the user's file for that, with a line end; empty without one."""
    with suppress(OSError, subprocess.SubprocessError):
        folder = env.get("XDG_CONFIG_HOME") or "~/.config"  # git knows who that is
        default = f"--default={folder}/git/ignore"
        said = subprocess.run(
            ["git", "config", "--type=path", default, "--get", "core.excludesFile"],
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10,
            check=True,
        ).stdout
        path = Path(os.fsdecode(said).rstrip("\n"))
        return path.read_text(encoding="utf-8", errors="surrogateescape").rstrip("\n") + "\n"
    return ""


@cache
def _tried(bwrap: str) -> str:
    """What the system says to a sandbox with nothing in it."""
    try:
        done = subprocess.run(
            [bwrap, *_TRY],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"{bwrap} cannot be run: {error}"
    if done.returncode == 0:
        return ""
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return f"the system does not let {bwrap} work" + (f" ({said[-1]})" if said else "")
