"""Checks of the forges that a watch imports issues from or proposes its work on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cuggino.config import BacklogSource, Config, ForgeKind, PullRequestSettings
from cuggino.doctor.result import CheckResult, CheckStatus
from cuggino.errors import ConfigError
from cuggino.forge import (
    OLDEST,
    PROGRAMS,
    check_program,
    forge_of,
    has_login,
    program_version,
    remote_url,
)


def forges(folder: Path, config: Config) -> Iterator[CheckResult]:
    """Check that each forge has a repository, a program and a login; nothing is sent to it."""
    used: list[BacklogSource | PullRequestSettings] = [
        source for source in config.backlog_sources if source.type != "command"
    ]
    if config.land_on == "pr":
        used.append(config.pull_requests)
    if not used:
        return

    seen: set[tuple[str, str]] = set()
    for settings in used:
        remote = settings.remote if isinstance(settings, PullRequestSettings) else "origin"
        try:
            forge = forge_of(settings, remote_url(folder, remote))
        except ConfigError as error:
            yield CheckResult("problem", f"forge: {error.message}", error.hint)
            continue
        if (forge.host, forge.repo) not in seen:
            seen.add((forge.host, forge.repo))
            yield _program(forge.kind, forge.host, forge.repo)


def _program(kind: ForgeKind, host: str, repo: str) -> CheckResult:
    program = PROGRAMS[kind]
    try:
        check_program(kind)
    except ConfigError as error:
        return CheckResult("problem", f"forge: {host}/{repo}: {error.message}", error.hint)
    version = program_version(kind)
    if version is None:
        return CheckResult("problem", f"forge: `{program} --version` failed", f"install {program}")
    name = f"{program} {'.'.join(map(str, version))}"
    if version < OLDEST[kind]:
        oldest = ".".join(map(str, OLDEST[kind]))
        return CheckResult(
            "note", f"forge: {name} is older than {oldest}, the oldest tested", f"update {program}"
        )
    login = f"run `{program} auth login --hostname {host}`"
    if not has_login(kind, host):
        # A login in a keyring is not visible to this look at `glab`.
        status: CheckStatus = "problem" if kind == "github" else "note"
        return CheckResult(status, f"forge: {program} has no login for {host}", login)
    return CheckResult("ok", f"forge: {host}/{repo} by {name}")
