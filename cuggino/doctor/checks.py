"""Checks of the project itself, and the order of all checks."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import get_args

from cuggino.agents import Role, configured_agent, make_agent
from cuggino.config import CONFIG_FILE, Config, config_path, load_config
from cuggino.doctor.deliverables import deliverables
from cuggino.doctor.forges import forges
from cuggino.doctor.guard import guard
from cuggino.doctor.notifications import notifications
from cuggino.doctor.other_agents import labeled, other_agents
from cuggino.doctor.packages import packages
from cuggino.doctor.plan_build import jobs
from cuggino.doctor.project_code import NOT_STARTED, why_not_started
from cuggino.doctor.result import NEVER_FAILS, CheckResult
from cuggino.doctor.sandbox import hidden, in_views, logins, sandbox, sandbox_of_agent
from cuggino.doctor.session_files import session_files
from cuggino.doctor.slots import slots
from cuggino.domain import Pricing, budget_unenforceable
from cuggino.errors import ConfigError, CugginoError, ProcessError
from cuggino.gate import why_it_cannot_fail
from cuggino.git import (
    Git,
    commit_obstacles,
    git_failure,
    git_refusal,
    program_settings,
    repository_state,
)
from cuggino.logins import login_answer
from cuggino.processes import run_bounded
from cuggino.stages import unpriceable
from cuggino.storage import SPEC_FILE, Backlog, Workspace, holds_specs, what_is_there
from cuggino.wakefulness import sleep_prevention

WORKSPACE = ".cuggino"
_FOLDERS = ("wip", "spec-issues", "backlog", "tbd", "archive", "parked")

_PLAIN_NAME = re.compile(r"\w[\w.+-]*", re.ASCII)
_SHELL_LIMIT_S = 10
_NO_UNDO = "without git `cuggino undo` restores nothing, and reports have no diffs"


def diagnose(
    folder: Path, *, agent: str | None, env: Mapping[str, str], uid: int, trusted: bool = False
) -> Iterator[CheckResult]:
    """Yield every result as soon as its check is done. Nothing of the project is started.

    With an unusable configuration, only the checks that do not depend on it are made.

    Args:
        folder: the project.
        agent: checked instead of the configured agents.
        env: the environment that agents would get.
        uid: the user that they would run as.
        trusted: whether the user has accepted the commands of the project.
    """
    result, config = configuration(folder)
    yield result
    name = agent or (config.agent if config else None)
    why_not = partial(why_not_started, folder=folder, env=env, trusted=trusted)
    reasons: list[str] = []
    if name is not None:
        why = why_not(name, path=config.agent_path if config else None, named=agent is not None)
        reasons.append(why)
        yield from _agent(name, why, folder=folder, config=config, env=env, uid=uid)
    for other in other_agents(config) if config is not None and agent is None else ():
        assert config is not None
        its = config.model_copy(update={"agent_path": other.path})
        why = why_not(other.name, path=other.path)
        reasons.append(why)
        results = _agent(other.name, why, folder=folder, config=its, env=env, uid=uid)
        yield from labeled(other, results)
    if config is not None:
        yield sandbox(folder, config, env)
        yield from hidden(folder, config, env)
        yield from logins(folder, config, env)
        yield from in_views(folder, config, env)
    yield workspace(folder)
    yield from repository(folder, commit=config is not None and config.commit)
    if config is not None:
        yield from pushing(config)
        yield specifications(folder, config.specs_path)
        yield from backlog(folder)
        yield setup_command(folder, config)
        yield check_command(folder, config)
        yield from slots(folder, config)
        yield from forges(folder, config)
        yield from notifications(config)
        yield from budget(folder, config, agent=agent, starts=not any(reasons))
        yield from staying_awake(config)
        yield from packages(config)
    yield from deliverables(folder)
    yield from jobs(folder, env)
    yield from session_files(folder)


def _agent(
    name: str,
    why_not: str,
    *,
    folder: Path,
    config: Config | None,
    env: Mapping[str, str],
    uid: int,
) -> Iterator[CheckResult]:
    if why_not:
        yield CheckResult("note", f"agent: {name} is not checked: {why_not}", NOT_STARTED)
        return
    path = config.agent_path if config else None
    with ThreadPoolExecutor(max_workers=1) as pool:
        asked = pool.submit(agent_login, name, folder=folder, path=path)
        found = agent_program(name, folder=folder, path=path)
        yield found
        if found.status == "ok" and (login := asked.result()) is not None:
            yield login
    guarded = config is not None and config.guard != "off"
    yield agent_permissions(name, env=env, uid=uid, guarded=guarded)
    if config is not None and found.status == "ok":
        yield from guard(name, folder=folder, config=config, env=env)
        yield from agent_sandbox(name, folder=folder, config=config, env=env)


def agent_sandbox(
    name: str, *, folder: Path, config: Config, env: Mapping[str, str]
) -> Iterator[CheckResult]:
    """Check whether the agent can be started in a sandbox."""
    agent = make_agent(name, cwd=folder, path=config.agent_path)
    yield from sandbox_of_agent(agent, folder, config, env)


def configuration(folder: Path) -> tuple[CheckResult, Config | None]:
    """Check `.cuggino.json`; None for the configuration if it is unusable."""
    try:
        config = load_config(folder)
    except ConfigError as error:
        return _problem("configuration", error), None
    source = f"{CONFIG_FILE} is valid"
    if not config_path(folder).exists():
        source = f"defaults, no {CONFIG_FILE}"
    return CheckResult("ok", f"configuration: {source}"), config


def agent_program(name: str, *, folder: Path, path: str | None) -> CheckResult:
    """Check that the agent is installed and new enough."""
    try:
        version = make_agent(name, cwd=folder, path=path).check()
    except CugginoError as error:
        return _problem("agent", error)
    return CheckResult("ok", f"agent: {name} {version}")


def agent_login(name: str, *, folder: Path, path: str | None) -> CheckResult | None:
    """Check that the agent is logged in; None for one that is no program."""
    try:
        agent = make_agent(name, cwd=folder, path=path)
        check = agent.login_check(folder)
    except CugginoError:  # its program is reported as missing
        return None
    if check is None and not agent.environments:
        return None
    answer = login_answer(check) if check is not None else None
    if answer is None:
        return CheckResult("note", f"login: unknown, as {name} does not report it")
    assert check is not None
    if answer:
        return CheckResult("ok", f"login: {name} is logged in")
    return CheckResult("problem", f"login: {name} is not logged in", check.hint)


def agent_permissions(
    name: str, *, env: Mapping[str, str], uid: int, guarded: bool = False
) -> CheckResult:
    """Check that the agent will work without permission prompts.

    As root, Claude Code refuses to skip them unless the environment declares a sandbox. A guarded
    run does not need to skip them: the guard answers.
    """
    if name != "claude" or uid != 0:
        return CheckResult("ok", "permissions: nothing in the way")
    # Claude Code accepts no other value of IS_SANDBOX.
    if env.get("IS_SANDBOX") == "1" or env.get("CLAUDE_CODE_BUBBLEWRAP"):
        return CheckResult("ok", "permissions: root, in a sandbox by the environment")
    hint = "run as a normal user, or set IS_SANDBOX=1 inside a container"
    if guarded:
        return CheckResult("note", "permissions: as root, claude refuses `cuggino plan`", hint)
    return CheckResult("problem", "permissions: claude refuses to skip permissions as root", hint)


def workspace(folder: Path) -> CheckResult:
    """Check that the workspace folder can be written or created."""
    place = folder / WORKSPACE
    inside = (place / name for name in _FOLDERS)
    parts = [place, *inside] if place.exists() else [folder]
    for part in parts:
        if part.exists() and not (part.is_dir() and os.access(part, os.W_OK | os.X_OK)):
            reason = "cannot be written" if part.is_dir() else "is not a folder"
            hint = "check the owner and permissions of the folder"
            if not part.is_dir():
                hint = "move that file to another place"
            return CheckResult("problem", f"workspace: {part} {reason}", hint)
    return CheckResult("ok", f"workspace: {parts[0]} can be written")


def repository(folder: Path, *, commit: bool) -> Iterator[CheckResult]:
    """Check the git repository, and with `commit` that commits can be made."""
    off = f', or set "commit" to false in {CONFIG_FILE}' if commit else ""

    if failure := git_failure(folder):  # before GitPython, which would wait for it, or not load
        what = f"git: {failure.removeprefix('git ').removeprefix('is ')}"
        yield _needed(commit, what, f"install git (again){off}")
        return

    try:
        state = repository_state(folder)
    except Exception as error:  # GitPython raises many types
        found = re.search(r"(?:fatal|error): (.+)", str(error))
        system = error.strerror if isinstance(error, OSError) else None
        said = found[1] if found else system
        reason = git_refusal(folder) or said or type(error).__name__
        yield _needed(commit, f"git: {reason}", "see what `git status` says here")
        return
    if state is None:
        yield _needed(commit, "git: no repository here", f"run `git init`{off}")
        return
    branch = f"branch {state.branch}" if state.branch else "no branch (detached HEAD)"
    yield CheckResult("ok", f"git: repository {state.root}, {branch}")
    if commit and not state.branch:
        remedy = "git switch -c NAME: commits that are on no branch are easily lost"
        yield CheckResult("note", "git: a run would commit on no branch", remedy)
    if state.head is None:
        yield CheckResult(
            "note", "git: no commit yet", "commit once, so that changes can be compared"
        )
    if state.dirty:
        hint = "`dirty` decides what a run commits of them" if commit else None
        yield CheckResult("note", "git: uncommitted changes", hint)
    if commit:
        yield from committer(folder)
        for obstacle in commit_obstacles(folder, looking=True):
            yield CheckResult("problem", f"git: {obstacle.what}", obstacle.hint)
    if settings := program_settings(folder):
        names = ", ".join(dict.fromkeys(setting.name for setting in settings))
        hint = "see `git config --list --show-origin`; nothing of it was started here"
        yield CheckResult("note", f"git: the repository's settings start programs: {names}", hint)


def committer(folder: Path) -> Iterator[CheckResult]:
    """Report the identity that commits are made with; a missing one is an obstacle."""
    given = _identity(folder, guess=False)
    if given is not None:
        yield CheckResult("ok", f"git: commits as {given}")
    elif (guessed := _identity(folder, guess=True)) is not None:
        set_it = "run `git config user.name NAME` and `git config user.email ADDRESS`"
        yield CheckResult("note", f"git: commits as {guessed}, which git guessed", set_it)


def _identity(folder: Path, *, guess: bool) -> str | None:
    options = () if guess else ("-c", "user.useConfigOnly=true")
    # Only git knows all the places that an identity may come from.
    names = ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT")
    told = [Git(cwd=folder).now(*options, "var", name) for name in names]
    if any(said.code for said in told):
        return None
    identity = told[-1].output.decode("utf-8", "replace")
    return identity[: identity.rfind(">") + 1]


def pushing(config: Config) -> Iterator[CheckResult]:
    """Report a `push` setting without commits to push."""
    if config.push is not None and not config.commit:
        yield CheckResult(
            "note",
            f'push: nothing is pushed to {config.push}, as "commit" is off',
            f'set "commit" to true in {CONFIG_FILE}, or remove "push"',
        )


def budget(
    folder: Path, config: Config, *, agent: str | None, starts: bool
) -> Iterator[CheckResult]:
    """Check that a budget in dollars can hold; `starts` is false if agents may not be loaded."""
    pricing = Pricing(config.price_as)
    try:
        pricing.check()
    except ConfigError as error:
        yield _problem("budget", error)
        return
    if config.budget is None or not starts:
        return
    roles = get_args(Role)
    try:
        chosen = configured_agent(config, cwd=folder, agent=agent)
    except CugginoError:
        return  # the check of the agent reports it
    if unknown := next(unpriceable(chosen, roles, model=config.model, pricing=pricing), None):
        yield _problem("budget", budget_unenforceable(unknown, config.budget))
        return
    silent = {one.name: one for role in roles for one in chosen.agents_for(role)}
    for name, one in silent.items():
        if one.capabilities.cost == "none":
            what = f"budget: {name} reports neither dollars nor tokens, so its first session ends"
            yield CheckResult("note", f"{what} the run", 'limit the run with "maxDuration" instead')
        elif one.capabilities.cost == "tokens" and config.price_as is None:
            what = f"budget: {name} reports no dollars, so its tokens are priced by its model"
            yield CheckResult(
                "note",
                f"{what}; an unknown model ends the run",
                'set "priceAs" to a model that costs about the same',
            )


def staying_awake(config: Config) -> Iterator[CheckResult]:
    """Check that the machine can be kept awake, unless it may sleep."""
    if config.allow_sleep:
        return
    method = sleep_prevention()
    if method:
        yield CheckResult("ok", f"sleep: none while a loop works ({method})")
    else:
        hint = 'turn it off in its settings, or set "allowSleep" to true if it never sleeps'
        yield CheckResult("note", "sleep: nothing here keeps the machine awake", hint)


def specifications(folder: Path, specs_path: str) -> CheckResult:
    """Check that there are specifications."""
    place = folder / specs_path
    hint = f"write the specifications there, or set specsPath in {CONFIG_FILE}"
    if not place.is_dir():
        state = what_is_there(place)
        if (folder / SPEC_FILE).is_file():  # for `cuggino deliver`, which needs no more
            return CheckResult("note", f"specs: {place} {state}", f"for `cuggino run`, {hint}")
        return CheckResult("problem", f"specs: {place} {state}", hint)
    if not os.access(place, os.R_OK | os.X_OK):
        return CheckResult("problem", f"specs: {place} cannot be read", "check its permissions")
    if not holds_specs(place):
        return CheckResult("problem", f"specs: {place} holds no specification", hint)
    return CheckResult("ok", f"specs: {specs_path}")


def backlog(folder: Path) -> Iterator[CheckResult]:
    """Report the items of the backlog, and files in it that are none."""
    survey = Backlog(Workspace(folder)).survey()
    for name, reason in survey.problems.items():
        yield CheckResult("note", f"backlog: {name} is no item: {reason}", "a watch skips it")
    if survey.items:
        count = len(survey.items)
        yield CheckResult("ok", f"backlog: {count} item{'s' * (count != 1)}")


def setup_command(folder: Path, config: Config) -> CheckResult:
    """Check that the program of the setup command is installed."""
    if config.setup_command is None:
        return CheckResult("ok", "setup command: none")
    return _shell_command("setup command", config.setup_command, folder=folder)


def check_command(folder: Path, config: Config) -> CheckResult:
    """Check that the program of the check command is installed, and report its effect."""
    if config.check_command is None:
        return CheckResult(
            "ok", "check command: none", "with one, an approval can depend on it (`cuggino setup`)"
        )
    found = _shell_command("check command", config.check_command, folder=folder)
    if found.status == "problem":
        return found
    if why := why_it_cannot_fail(config.check_command):
        return CheckResult("note", f"{found.what} (it cannot fail: {why})", NEVER_FAILS)
    if config.gate == "context" and config.slots > 1:
        return CheckResult("ok", f"{found.what} (it decides what lands)")
    if config.gate == "context":
        return CheckResult(
            "note",
            f"{found.what} (an approval counts even if it fails)",
            f'set "gate" to "block" in {CONFIG_FILE} to approve only if it passes',
        )
    where = " on a clean checkout of HEAD, too" if config.gate == "clean" else ""
    return CheckResult("ok", f"{found.what} (an approval counts only if it passes{where})")


def _shell_command(name: str, command: str, *, folder: Path) -> CheckResult:
    word = command.split()[0]
    # Paths, assignments and other syntax are left to the shell.
    if _PLAIN_NAME.fullmatch(word) and shutil.which(word) is None and not _in_shell(word, folder):
        return CheckResult(
            "problem",
            f"{name}: {word} was not found",
            f"install it, or correct the command in {CONFIG_FILE}: {command}",
        )
    return CheckResult("ok", f"{name}: {command}")


def _in_shell(word: str, folder: Path) -> bool:
    """Return whether the word is a builtin or function of the shell."""
    asks = ("/bin/sh", "-c", 'command -v "$1"', "sh", word)
    with suppress(ProcessError):
        return run_bounded(asks, seconds=_SHELL_LIMIT_S, cwd=folder).code == 0
    return False


def _needed(commit: bool, what: str, hint: str) -> CheckResult:
    """Return a problem if commits are on, else what does not work without git."""
    if commit:
        return CheckResult("problem", what, hint)
    return CheckResult("note", f"{what} (commit is off)", f"{hint}; {_NO_UNDO}")


def _problem(what: str, error: CugginoError) -> CheckResult:
    return CheckResult("problem", f"{what}: {error.message}", error.hint)
