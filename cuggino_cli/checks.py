"""What `cuggino doctor` looks at: each check is a function that gives its findings."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from cuggino.config import CONFIG_FILE, Config, config_path, load_config
from cuggino.errors import ConfigError, CugginoError
from cuggino.storage.deliverables import SPEC_FILE
from cuggino_cli.agent_checks import other_agents, told_of
from cuggino_cli.deliver_checks import deliverables
from cuggino_cli.finding import Finding
from cuggino_cli.guard_checks import guard
from cuggino_cli.notify_checks import notifications
from cuggino_cli.session_files import session_files

WORKSPACE = ".cuggino"
_FOLDERS = ("wip", "spec-issues", "backlog", "tbd", "archive", "parked")

_PLAIN_NAME = re.compile(r"\w[\w.+-]*", re.ASCII)
_SHELL_LIMIT_S = 10


def diagnose(
    folder: Path, *, agent: str | None, env: Mapping[str, str], uid: int
) -> Iterator[Finding]:
    """All findings about the project in `folder`, each as soon as it is there.

    With a configuration that cannot be used, only what does not depend on it is looked at.

    Args:
        agent: looked at in place of the configured one.
        env: the environment that the agent would get.
        uid: the user that it would run as.
    """
    finding, config = configuration(folder)
    yield finding
    name = agent or (config.agent if config else None)
    if name is not None:
        yield from _agent(name, folder=folder, config=config, env=env, uid=uid)
    for other in other_agents(config) if config is not None and agent is None else ():
        assert config is not None
        its = config.model_copy(update={"agent_path": other.path})
        yield from told_of(other, _agent(other.name, folder=folder, config=its, env=env, uid=uid))
    yield workspace(folder)
    yield from repository(folder, commit=config is not None and config.commit)
    if config is not None:
        yield from pushing(config)
        yield specifications(folder, config.specs_path)
        yield setup_command(folder, config)
        yield check_command(folder, config)
        yield from notifications(config)
    yield from deliverables(folder)
    yield from session_files(folder)


def _agent(
    name: str, *, folder: Path, config: Config | None, env: Mapping[str, str], uid: int
) -> Iterator[Finding]:
    found = agent_program(name, folder=folder, path=config.agent_path if config else None)
    yield found
    guarded = config is not None and config.guard != "off"
    yield agent_permissions(name, env=env, uid=uid, guarded=guarded)
    if config is not None and found.status == "ok":
        yield from guard(name, folder=folder, config=config, env=env)


def configuration(folder: Path) -> tuple[Finding, Config | None]:
    """Whether `.cuggino.json` can be used, and what it says."""
    try:
        config = load_config(folder)
    except ConfigError as error:
        return _problem("configuration", error), None
    source = f"{CONFIG_FILE} is valid"
    if not config_path(folder).exists():
        source = f"defaults, no {CONFIG_FILE}"
    return Finding("ok", f"configuration: {source}"), config


def agent_program(name: str, *, folder: Path, path: str | None) -> Finding:
    """Whether the agent is there and new enough."""
    from cuggino.agents import make_agent

    try:
        version = make_agent(name, cwd=folder, path=path).check()
    except CugginoError as error:
        return _problem("agent", error)
    return Finding("ok", f"agent: {name} {version}")


def agent_permissions(
    name: str, *, env: Mapping[str, str], uid: int, guarded: bool = False
) -> Finding:
    """Whether the agent will work without asking for permissions.

    Claude does not as root, unless the environment says that it is in a sandbox. When it is
    guarded it need not skip its questions in a run: the guard answers them.
    """
    if name != "claude" or uid != 0:
        return Finding("ok", "permissions: nothing in the way")
    # The program takes no other value of IS_SANDBOX.
    if env.get("IS_SANDBOX") == "1" or env.get("CLAUDE_CODE_BUBBLEWRAP"):
        return Finding("ok", "permissions: root, in a sandbox by the environment")
    hint = "run as a normal user, or set IS_SANDBOX=1 inside a container"
    if guarded:
        return Finding("note", "permissions: as root, claude refuses `cuggino plan`", hint)
    return Finding("problem", "permissions: claude refuses to skip permissions as root", hint)


def workspace(folder: Path) -> Finding:
    """Whether the workspace folder can be written, or made."""
    place = folder / WORKSPACE
    inside = (place / name for name in _FOLDERS)
    parts = [place, *inside] if place.exists() else [folder]
    for part in parts:
        if part.exists() and not (part.is_dir() and os.access(part, os.W_OK | os.X_OK)):
            reason = "cannot be written" if part.is_dir() else "is no folder"
            hint = "check the owner and permissions of the folder"
            if not part.is_dir():
                hint = "move that file to another place"
            return Finding("problem", f"workspace: {part} {reason}", hint)
    return Finding("ok", f"workspace: {parts[0]} can be written")


def repository(folder: Path, *, commit: bool) -> Iterator[Finding]:
    """What git says of the folder; whether it can commit there when `commit` is on."""
    off = f'or set "commit" to false in {CONFIG_FILE}'
    if shutil.which("git") is None:
        yield _needed(commit, "git: not installed", f"install git, {off}")
        return
    from cuggino.sources.git import repository_state

    try:
        state = repository_state(folder)
    except Exception as error:  # GitPython has many, and a diagnosis must not end here
        said = re.search(r"(?:fatal|error): (.+)", str(error))
        reason = said[1] if said else type(error).__name__
        yield _needed(commit, f"git: {reason}", "see what `git status` says here")
        return
    if state is None:
        yield _needed(commit, "git: no repository here", f"run `git init`, {off}")
        return
    branch = f"branch {state.branch}" if state.branch else "no branch (detached HEAD)"
    yield Finding("ok", f"git: repository {state.root}, {branch}")
    if commit and not state.branch:
        remedy = "git switch -c NAME: commits that are on no branch are easily lost"
        yield Finding("note", "git: a run would commit on no branch", remedy)
    if state.head is None:
        yield Finding("note", "git: no commit yet", "commit once, so that changes can be compared")
    if state.dirty:
        hint = "a run commits them together with its own" if commit else None
        yield Finding("note", "git: uncommitted changes", hint)
    if commit:
        yield committer(folder)


def committer(folder: Path) -> Finding:
    """Whether git knows in whose name to commit: by configuration, environment or guess."""
    set_it = "run `git config user.name NAME` and `git config user.email ADDRESS`"
    given = _identity(folder, guess=False)
    if given is not None:
        return Finding("ok", f"git: commits as {given}")
    guessed = _identity(folder, guess=True)
    if guessed is not None:
        return Finding("note", f"git: commits as {guessed}, which git guessed", set_it)
    return Finding("problem", "git: no user.name and user.email to commit with", set_it)


def _identity(folder: Path, *, guess: bool) -> str | None:
    import git

    with git.Repo(folder, search_parent_directories=True) as repo:
        options = {} if guess else {"c": "user.useConfigOnly=true"}
        try:
            # Both are needed, and git alone knows all the places that they may come from.
            repo.git(**options).var("GIT_AUTHOR_IDENT")
            identity = str(repo.git(**options).var("GIT_COMMITTER_IDENT"))
        except git.GitCommandError:
            return None
    return identity[: identity.rfind(">") + 1]


def pushing(config: Config) -> Iterator[Finding]:
    """A note when there is a `push` that has nothing to push."""
    if config.push is not None and not config.commit:
        yield Finding(
            "note",
            f'push: nothing is pushed to {config.push}, as "commit" is off',
            f'set "commit" to true in {CONFIG_FILE}, or remove "push"',
        )


def specifications(folder: Path, specs_path: str) -> Finding:
    """Whether there is anything to work by."""
    place = folder / specs_path
    hint = f"write the specifications there, or set specsPath in {CONFIG_FILE}"
    if not place.is_dir():
        state = "is no folder" if place.exists() else "does not exist"
        if (folder / SPEC_FILE).is_file():  # for `cuggino deliver`, which needs no more
            return Finding("note", f"specs: {place} {state}", f"for `cuggino run`, {hint}")
        return Finding("problem", f"specs: {place} {state}", hint)
    if not os.access(place, os.R_OK | os.X_OK):
        return Finding("problem", f"specs: {place} cannot be read", "check its permissions")
    if not any(files for _, _, files in os.walk(place, followlinks=True)):
        return Finding("problem", f"specs: {place} holds no file", hint)
    return Finding("ok", f"specs: {specs_path}")


def setup_command(folder: Path, config: Config) -> Finding:
    """Whether the program of the setup command is there."""
    if config.setup_command is None:
        return Finding("ok", "setup command: none")
    return _shell_command("setup command", config.setup_command, folder=folder)


def check_command(folder: Path, config: Config) -> Finding:
    """Whether the program of the check command is there, and what the command decides."""
    if config.check_command is None:
        return Finding(
            "ok", "check command: none", "with one, an approval can depend on it (`cuggino setup`)"
        )
    found = _shell_command("check command", config.check_command, folder=folder)
    if found.status == "problem":
        return found
    if config.gate == "block":
        return Finding("ok", f"{found.what} (an approval counts only if it passes)")
    return Finding(
        "ok", found.what, f'set "gate" to "block" in {CONFIG_FILE} to approve only if it passes'
    )


def _shell_command(name: str, command: str, *, folder: Path) -> Finding:
    word = command.split()[0]
    # Paths, assignments and other syntax are for the shell to judge when it runs them.
    if _PLAIN_NAME.fullmatch(word) and shutil.which(word) is None and not _in_shell(word, folder):
        return Finding(
            "problem",
            f"{name}: {word} was not found",
            f"install it, or correct the command in {CONFIG_FILE}: {command}",
        )
    return Finding("ok", f"{name}: {command}")


def _in_shell(word: str, folder: Path) -> bool:
    """Whether it is a word of the shell itself."""
    with suppress(OSError, subprocess.SubprocessError):
        return (
            subprocess.run(
                ["/bin/sh", "-c", 'command -v "$1"', "sh", word],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_SHELL_LIMIT_S,
                check=False,
            ).returncode
            == 0
        )
    return False


def _needed(commit: bool, what: str, hint: str) -> Finding:
    """A problem when commits are wanted."""
    return Finding("problem", what, hint) if commit else Finding("ok", f"{what} (commit is off)")


def _problem(what: str, error: CugginoError) -> Finding:
    return Finding("problem", f"{what}: {error.message}", error.hint)
