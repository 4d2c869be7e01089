"""The operating system's sandbox around an agent's commands: its limits and how it is turned off.

The guard judges the text of a command; the sandbox limits its effects. The agent's program builds
it around each command that it runs. The agent's file tools are covered by the guard alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from cuggino.guard.policy import Policy

SandboxSource: TypeAlias = Literal["cli", "env", "default"]

NO_SANDBOX = "AUTONOE_NO_SANDBOX"
"""The environment variable that turns the sandbox off when it is exactly `1`."""

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
"""Hosts that commands may connect to: package registries, code hosts, the machine itself."""

CACHES = (
    *("~/.npm", "~/.yarn", "~/.cache", "~/Library/Caches", "~/.local/share/pnpm"),
    *("~/.bun/install/cache", "~/.cargo/registry", "~/.cargo/git", "~/go/pkg", "~/.gradle/caches"),
    *("~/.m2/repository", "~/.gem", "~/.bundle", "~/.composer/cache"),
)
"""Cache folders of package managers, outside the project."""

SCRATCH = ("/tmp", "/private/tmp", "/var/tmp")
"""Folders for temporary files."""

_DISABLED: Mapping[SandboxSource, str] = {
    "cli": "Warning: SDK sandbox is disabled. System-level isolation is not enforced.",
    "env": f"Warning: SDK sandbox disabled via {NO_SANDBOX} environment variable.",
}
_DESTRUCTIVE = (
    "Warning: Destructive commands (rm, mv) enabled. Files can be deleted within project directory."
)


class Sandbox(NamedTuple):
    """The limits of a command. It may write in the project and in the places below."""

    deny_write: tuple[str, ...] = ()
    """Absolute paths of the project that stay read-only, whether they exist or not."""
    allow_write: tuple[str, ...] = (*SCRATCH, *CACHES)
    """More writable places; `~` is the home of the user who runs the agent."""
    domains: tuple[str, ...] = DOMAINS
    """Hosts to connect to; `*.example.com` covers all subdomains."""


class SandboxMode(NamedTuple):
    """The state of the sandbox: on, or the option that turned it off."""

    is_disabled: bool = False
    source: SandboxSource = "default"


def sandbox_mode(*, no_sandbox: bool, env: Mapping[str, str]) -> SandboxMode:
    """Return the mode: `--no-sandbox` wins over the environment; the default is on."""
    if no_sandbox:
        return SandboxMode(True, "cli")
    if env.get(NO_SANDBOX) == "1":
        return SandboxMode(True, "env")
    return SandboxMode()


def start_warnings(sandbox: SandboxMode, *, allow_destructive: bool) -> tuple[str, ...]:
    """Return the warnings for standard error at the start, the sandbox first."""
    lines = [_DISABLED[sandbox.source]] if sandbox.is_disabled else []
    if allow_destructive:
        lines.append(_DESTRUCTIVE)
    return tuple(lines)


def sandbox_for(
    policy: Policy, *, keep: Iterable[str] = (), domains: Iterable[str] = ()
) -> Sandbox:
    """Return the sandbox of a session with this policy; `domains` are added to the default hosts.

    `keep` are more read-only paths, relative to the project.

    Paths that the policy protects are read-only for programs too. `.git` is left to the agent's own
    sandbox, which protects hooks and settings, because a commit has to write the rest. If the role
    is granted a file in a protected folder, the other entries of that folder are protected by name.
    Roles with a short list of writable files are not limited to it here, because their tests and
    builds write too. Reads the disk once, before the agent starts.

    A scratch folder that contains the project is not writable as a whole, as other projects may be
    next to it. Sandboxes around those would also disturb this one: Claude Code creates empty files
    for missing names that it protects (such as `.mcp.json`) in every writable folder above the
    project, and removes them afterward. Commands keep a temporary folder of their own, `$TMPDIR`.
    """
    root = Path(policy.project)
    names = [name for name in (*policy.protected, *policy.read_only, *keep) if name != ".git"]
    granted = [root / name for name in policy.granted]
    denied = [path for name in names for path in _without(root / name, granted)]
    scratch = [place for place in SCRATCH if not root.is_relative_to(Path(place).resolve())]
    return Sandbox(
        deny_write=tuple(dict.fromkeys(map(str, denied))),
        allow_write=(*scratch, *CACHES),
        domains=tuple(dict.fromkeys((*DOMAINS, *domains))),
    )


def _without(place: Path, granted: list[Path]) -> Iterator[Path]:
    """Yield the place, or those parts of it that contain nothing granted."""
    if place in granted:
        return
    if not any(file.is_relative_to(place) for file in granted):
        yield place
    elif place.is_dir():
        for part in sorted(place.iterdir()):
            yield from _without(part, granted)
