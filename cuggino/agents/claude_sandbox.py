"""The sandbox of the Claude Code CLI: whether it can be had here, and how it is ordered.

Measured on the real program (2.1.329, Linux): it wraps each command, not its file tools; the model
may ask to leave it unless `allowUnsandboxedCommands` is false; without its helpers it runs
commands in the open unless `failIfUnavailable` is true. A denied path that does not exist shows up
as a device within the sandbox, and nowhere else.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from cuggino.security.sandbox import Sandbox

_SEATBELT = "/usr/bin/sandbox-exec"
_HELPERS = ("bwrap", "socat")
_PACKAGES = {"bwrap": "bubblewrap", "socat": "socat"}
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
