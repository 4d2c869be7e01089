"""Checks of the project's files and commands, and of the programs that its settings need."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from cuggino.chat import channels_of
from cuggino.config import CONFIG_FILE, BacklogSource, ForgeKind, PullRequestSettings
from cuggino.doctor.result import NEVER_FAILS, CheckResult, Place, note, ok, problem
from cuggino.errors import ConfigError, ProcessError, install_extra
from cuggino.forge import (
    OLDEST,
    PROGRAMS,
    check_program,
    forge_of,
    has_login,
    program_version,
    remote_url,
)
from cuggino.gate import why_it_cannot_fail
from cuggino.notify import make_notifier
from cuggino.processes import run_bounded
from cuggino.storage import (
    SPEC_FILE,
    WORKSPACE_FOLDER,
    Backlog,
    Workspace,
    holds_specs,
    what_is_there,
)
from cuggino.wakefulness import sleep_prevention

_FOLDERS = ("wip", "spec-issues", "backlog", "tbd", "archive", "parked")
_PLAIN_NAME = re.compile(r"\w[\w.+-]*", re.ASCII)
_SHELL_LIMIT_S = 10
_PAGE = ("jinja2", "markdown_it", "starlette", "uvicorn")


def workspace(place: Place) -> Iterator[CheckResult]:
    """Check that the workspace folder can be written or created."""
    top = place.folder / WORKSPACE_FOLDER
    parts = [top, *(top / name for name in _FOLDERS)] if top.exists() else [place.folder]
    for part in parts:
        if part.exists() and not part.is_dir():
            yield problem(f"{part} is not a folder", "move that file to another place")
            return
        if part.exists() and not os.access(part, os.W_OK | os.X_OK):
            hint = "check the owner and permissions of the folder"
            yield problem(f"{part} cannot be written", hint)
            return
    yield ok(f"{parts[0]} can be written")


def specifications(place: Place) -> Iterator[CheckResult]:
    """Check that there are specifications."""
    specs = place.folder / place.config.specs_path
    hint = f"write the specifications there, or set specsPath in {CONFIG_FILE}"
    if not specs.is_dir():
        what = f"{specs} {what_is_there(specs)}"
        if (place.folder / SPEC_FILE).is_file():  # for `cuggino deliver`, which needs no more
            yield note(what, f"for `cuggino run`, {hint}")
        else:
            yield problem(what, hint)
    elif not os.access(specs, os.R_OK | os.X_OK):
        yield problem(f"{specs} cannot be read", "check its permissions")
    elif not holds_specs(specs):
        yield problem(f"{specs} holds no specification", hint)
    else:
        yield ok(place.config.specs_path)


def backlog(place: Place) -> Iterator[CheckResult]:
    """Report the items of the backlog, and files in it that are none."""
    survey = Backlog(Workspace(place.folder)).survey()
    for name, reason in survey.problems.items():
        yield note(f"{name} is not an item: {reason}", "a watch skips it")
    if survey.items:
        count = len(survey.items)
        yield ok(f"{count} item{'s' * (count != 1)}")


def setup_command(place: Place) -> Iterator[CheckResult]:
    """Check that the program of the setup command is installed."""
    command = place.config.setup_command
    yield ok("none") if command is None else _shell_command(command, place.folder)


def check_command(place: Place) -> Iterator[CheckResult]:
    """Check that the program of the check command is installed, and report its effect."""
    config = place.config
    if config.check_command is None:
        yield ok("none", "with one, an approval can depend on it (`cuggino setup`)")
        return
    found = _shell_command(config.check_command, place.folder)
    if found.status == "problem":
        yield found
    elif why := why_it_cannot_fail(config.check_command):
        yield note(f"{found.what} (it cannot fail: {why})", NEVER_FAILS)
    elif config.gate == "context" and config.slots > 1:
        yield ok(f"{found.what} (it decides what lands)")
    elif config.gate == "context":
        hint = f'set "gate" to "block" in {CONFIG_FILE} to approve only if it passes'
        yield note(f"{found.what} (an approval counts even if it fails)", hint)
    else:
        where = " on a clean checkout of HEAD, too" if config.gate == "clean" else ""
        yield ok(f"{found.what} (an approval counts only if it passes{where})")


def _shell_command(command: str, folder: Path) -> CheckResult:
    word = command.split()[0]
    # Paths, assignments and other syntax are left to the shell.
    if _PLAIN_NAME.fullmatch(word) and shutil.which(word) is None and not _in_shell(word, folder):
        hint = f"install it, or correct the command in {CONFIG_FILE}: {command}"
        return problem(f"{word} was not found", hint)
    return ok(command)


def _in_shell(word: str, folder: Path) -> bool:
    """Return whether the word is a builtin or function of the shell."""
    asks = ("/bin/sh", "-c", 'command -v "$1"', "sh", word)
    with suppress(ProcessError):
        return run_bounded(asks, seconds=_SHELL_LIMIT_S, cwd=folder).code == 0
    return False


def forges(place: Place) -> Iterator[CheckResult]:
    """Check that each forge has a repository, a program and a login; nothing is sent to it."""
    config = place.config
    used: list[BacklogSource | PullRequestSettings] = [
        source for source in config.backlog_sources if source.type != "command"
    ]
    if config.land_on == "pr":
        used.append(config.pull_requests)
    seen: set[tuple[str, str]] = set()
    for settings in used:
        remote = settings.remote if isinstance(settings, PullRequestSettings) else "origin"
        try:
            forge = forge_of(settings, remote_url(place.folder, remote))
        except ConfigError as error:
            yield problem(error.message, error.hint)
            continue
        if (forge.host, forge.repo) not in seen:
            seen.add((forge.host, forge.repo))
            yield _forge(forge.kind, forge.host, forge.repo)


def _forge(kind: ForgeKind, host: str, repo: str) -> CheckResult:
    program = PROGRAMS[kind]
    try:
        check_program(kind)
    except ConfigError as error:
        return problem(f"{host}/{repo}: {error.message}", error.hint)
    version = program_version(kind)
    if version is None:
        return problem(f"`{program} --version` failed", f"install {program}")
    name = f"{program} {'.'.join(map(str, version))}"
    if version < OLDEST[kind]:
        oldest = ".".join(map(str, OLDEST[kind]))
        return note(f"{name} is older than {oldest}, the oldest tested", f"update {program}")
    if has_login(kind, host):
        return ok(f"{host}/{repo} by {name}")
    # A login in a keyring is not visible to this look at `glab`.
    found = problem if kind == "github" else note
    return found(
        f"{program} has no login for {host}", f"run `{program} auth login --hostname {host}`"
    )


def notifications(place: Place) -> Iterator[CheckResult]:
    """Check that Apprise is installed and accepts the URLs of `notify`; nothing is sent.

    A failure is a problem because no loop starts then.
    """
    given = place.config.notifications.to
    ways = [given] if isinstance(given, str) else given
    # What follows the scheme may be a password.
    schemes = [way.partition("://")[0] for way in ways if "://" in way]
    if not schemes:
        return
    try:
        make_notifier(place.config)
    except ConfigError as error:
        yield problem(error.message, f'{error.hint}, or set "notify" to "bell" in {CONFIG_FILE}')
    else:
        yield ok(f"by Apprise ({', '.join(dict.fromkeys(schemes))})")


def chats(place: Place) -> Iterator[CheckResult]:
    """Check that the channels of `chat` have their secrets; nothing is sent.

    A channel of the project's own is code, and only made if that is trusted.
    """
    settings = place.config.chat
    if not place.trusted:
        settings = settings.model_copy(update={"own": None})
    if names := [channel.name for channel in channels_of(settings)]:
        yield ok(f"by {' and '.join(names)}")


def staying_awake(place: Place) -> Iterator[CheckResult]:
    """Check that the machine can be kept awake, unless it may sleep."""
    if place.config.allow_sleep:
        return
    if method := sleep_prevention():
        yield ok(f"none while a loop works ({method})")
    else:
        hint = 'turn it off in its settings, or set "allowSleep" to true if it never sleeps'
        yield note("nothing here keeps the machine awake", hint)


def page_packages(_place: Place) -> Iterator[CheckResult]:
    """Check that `report` and `serve` can be used."""
    if missing := [name for name in _PAGE if find_spec(name) is None]:
        hint = "they belong to cuggino: install it again, with what it depends on"
        yield note(f"not installed: {', '.join(missing)}", hint)
    else:
        yield ok("installed")


def cluster_packages(place: Place) -> Iterator[CheckResult]:
    """Check that a configured cluster can be used."""
    if place.config.cluster_settings.address is not None and find_spec("distributed") is None:
        yield problem("the package distributed is not installed", install_extra("cluster"))
