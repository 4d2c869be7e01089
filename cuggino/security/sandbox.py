"""The operating system's own boundary around an agent's commands: what it holds, who turned it off.

The guard reads what a command says; the sandbox holds what it does. It is the agent's program
that builds it, around each command that it runs; its file tools are the guard's alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from cuggino.security.policy import Policy

SandboxSource: TypeAlias = Literal["cli", "env", "default"]

NO_SANDBOX = "AUTONOE_NO_SANDBOX"
"""The environment variable that turns the sandbox off, when it is exactly `1`."""

DOMAINS = (
    *("registry.npmjs.org", "registry.yarnpkg.com", "nodejs.org", "jsr.io", "npm.jsr.io"),
    *("pypi.org", "files.pythonhosted.org"),
    *("rubygems.org", "index.rubygems.org"),
    *("proxy.golang.org", "sum.golang.org", "go.dev"),
    *("crates.io", "index.crates.io", "static.crates.io", "static.rust-lang.org"),
    *("packagist.org", "repo.packagist.org"),
    *("repo.maven.apache.org", "repo1.maven.org", "plugins.gradle.org", "services.gradle.org"),
    *("github.com", "api.github.com", "codeload.github.com", "raw.githubusercontent.com"),
    *("objects.githubusercontent.com", "release-assets.githubusercontent.com"),
    *("gitlab.com", "bitbucket.org"),
    "localhost",
)
"""Where commands may connect to: registries of packages, hosts of code, the machine itself."""

CACHES = (
    *("~/.npm", "~/.yarn", "~/.cache", "~/Library/Caches", "~/.local/share/pnpm"),
    *("~/.bun/install/cache", "~/.cargo/registry", "~/.cargo/git", "~/go/pkg", "~/.gradle/caches"),
    *("~/.m2/repository", "~/.gem", "~/.bundle", "~/.composer/cache"),
)
"""Folders outside the project in which package managers keep what they have loaded."""

SCRATCH = ("/tmp", "/private/tmp", "/var/tmp")
"""Where everybody may write."""

_DISABLED: Mapping[SandboxSource, str] = {
    "cli": "Warning: SDK sandbox is disabled. System-level isolation is not enforced.",
    "env": f"Warning: SDK sandbox disabled via {NO_SANDBOX} environment variable.",
}
_DESTRUCTIVE = (
    "Warning: Destructive commands (rm, mv) enabled. Files can be deleted within project directory."
)


class Sandbox(NamedTuple):
    """What commands may reach. They may write in the project, and nowhere else but here."""

    deny_write: tuple[str, ...] = ()
    """Absolute paths of the project that stay as they are; those need not exist."""
    allow_write: tuple[str, ...] = (*SCRATCH, *CACHES)
    """More places to write; `~` is the home of whoever runs the agent."""
    domains: tuple[str, ...] = DOMAINS
    """Hosts to connect to; `*.example.com` is all below it."""


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


def sandbox_for(
    policy: Policy, *, keep: Iterable[str] = (), domains: Iterable[str] = ()
) -> Sandbox:
    """The sandbox of a session with this policy; `domains` may be connected to besides.

    `keep` are further places, relative to the project, that no command may write.

    What the policy protects is protected from programs too. `.git` is left to the agent's own
    sandbox, which keeps its hooks and settings, as a commit has to write the rest. Where the role
    is given a file in a protected folder, what else is in that folder now is protected by name.
    Roles that may write little else are not held to that here: their tests and builds write too.
    Looks at the disk once, before the agent starts.
    """
    root = Path(policy.project)
    names = [name for name in (*policy.protected, *policy.read_only, *keep) if name != ".git"]
    granted = [root / name for name in policy.granted]
    denied = [path for name in names for path in _without(root / name, granted)]
    return Sandbox(
        deny_write=tuple(dict.fromkeys(map(str, denied))),
        domains=tuple(dict.fromkeys((*DOMAINS, *domains))),
    )


def _without(place: Path, granted: list[Path]) -> Iterator[Path]:
    """The place, or the parts of it that hold nothing of what is granted."""
    if place in granted:
        return
    if not any(file.is_relative_to(place) for file in granted):
        yield place
    elif place.is_dir():
        for part in sorted(place.iterdir()):
            yield from _without(part, granted)
