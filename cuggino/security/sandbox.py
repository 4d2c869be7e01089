"""Whether an agent runs in the sandbox of its program, who decided so, and what is said of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

SandboxSource: TypeAlias = Literal["cli", "env", "default"]

NO_SANDBOX = "AUTONOE_NO_SANDBOX"
"""The environment variable that turns the sandbox off, when it is exactly `1`."""

_DISABLED: Mapping[SandboxSource, str] = {
    "cli": "Warning: SDK sandbox is disabled. System-level isolation is not enforced.",
    "env": f"Warning: SDK sandbox disabled via {NO_SANDBOX} environment variable.",
}
_DESTRUCTIVE = (
    "Warning: Destructive commands (rm, mv) enabled. Files can be deleted within project directory."
)


class SandboxMode(NamedTuple):
    """Whether the sandbox is off, and by what."""

    is_disabled: bool = False
    source: SandboxSource = "default"


def sandbox_mode(*, no_sandbox: bool, env: Mapping[str, str]) -> SandboxMode:
    """The flag `--no-sandbox` before the environment, else the sandbox is on (AUT-151)."""
    if no_sandbox:
        return SandboxMode(True, "cli")
    if env.get(NO_SANDBOX) == "1":
        return SandboxMode(True, "env")
    return SandboxMode()


def start_warnings(sandbox: SandboxMode, *, allow_destructive: bool) -> tuple[str, ...]:
    """What is said on standard error at the start: the sandbox first (AUT-152)."""
    lines = [_DISABLED[sandbox.source]] if sandbox.is_disabled else []
    if allow_destructive:
        lines.append(_DESTRUCTIVE)
    return tuple(lines)
