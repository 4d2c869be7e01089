"""The check of the sandbox: which roles the system confines here, and how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from cuggino.agents import LlmAgent
from cuggino.config import CONFIG_FILE, Config
from cuggino.doctor.result import CheckResult
from cuggino.git import view_obstacles
from cuggino.guard import NO_SANDBOX, sandbox_mode
from cuggino.sandbox import (
    LOGIN_VARIABLES,
    NO_BOUNDARY,
    ROWS,
    Boundary,
    ViewRole,
    home_of,
    login_files,
    named_paths,
    probe,
    views_of,
    without_logins,
)

_VERIFIED = "verification only: what a session changes beyond its role is found and put back"
_UNLIMITED = "network: nothing limits the hosts of"
_NETWORK = "`cuggino help sandbox` explains what limits them"
_HELP = "`cuggino help sandbox` explains what it needs"


def boundary_here(folder: Path, config: Config, env: Mapping[str, str]) -> Boundary:
    """Return what confines the agents of a run in this project."""
    if config.sandbox == "off" or sandbox_mode(no_sandbox=False, env=env).is_disabled:
        return NO_BOUNDARY
    return probe(folder, home=home_of(env))


def sandbox(folder: Path, config: Config, env: Mapping[str, str]) -> CheckResult:
    """Check what confines each role on this machine. Nothing of the project is started."""
    if sandbox_mode(no_sandbox=False, env=env).is_disabled:
        return CheckResult("note", f"sandbox: off, by {NO_SANDBOX}", _VERIFIED)
    if config.sandbox == "off":
        return CheckResult("note", f'sandbox: off, by "sandbox" in {CONFIG_FILE}', _VERIFIED)
    found = boundary_here(folder, config, env)
    held = [role for role in ROWS if found.holds(role)]
    why = f" ({found.reason})" if found.reason else ""
    if len(held) == len(ROWS):
        return CheckResult("ok", f"sandbox: {found.name} confines all roles{why}", _roles(found))
    what = f"sandbox: {found.name} confines only the roles that look{why}"
    if not held:
        what = f"sandbox: none here{why}"
    if config.sandbox == "require":
        what = f"{what}, but it is required: a run would not start"
        hint = f'{_roles(found)}\n{_HELP}, or set "sandbox" to "auto" in {CONFIG_FILE}'
        return CheckResult("problem", what, hint)
    return CheckResult("note", what, f"{_roles(found)}\n{_HELP}")


def _roles(found: Boundary) -> str:
    """Return how the roles are confined, one line for each way."""
    ways: dict[str, list[str]] = {}
    for role in ROWS:
        ways.setdefault(_way(found, role), []).append(role)
    if len(ways) == 1:
        return f"all roles: {next(iter(ways))}"
    return "\n".join(f"{', '.join(roles)}: {way}" for way, roles in ways.items())


def _way(found: Boundary, role: ViewRole) -> str:
    if not found.holds(role):
        return _VERIFIED
    match ROWS[role].access:
        case "writes":
            return "writes the project, but nothing protected"
        case "looks" if found.overlay:
            return "copy-on-write, so changes vanish"
        case _:
            return "read-only, but for files of its own"


def in_views(folder: Path, config: Config, env: Mapping[str, str]) -> Iterator[CheckResult]:
    """Check that git and the program of the check work in the views of a run.

    Nothing of the project is started.
    """
    if boundary_here(folder, config, env) is NO_BOUNDARY:
        return
    found = view_obstacles(folder, views_of(config), check_command=config.check_command)
    for obstacle in found:
        yield CheckResult("problem", f"sandbox: {obstacle.what}", obstacle.hint)


def hidden(folder: Path, config: Config, env: Mapping[str, str]) -> Iterator[CheckResult]:
    """Check that the paths of `sandboxHide` exist, and that something hides them."""
    found = boundary_here(folder, config, env)
    if config.sandbox_hide and found.engine != "bubblewrap":
        yield CheckResult("note", "sandboxHide: no effect, as it needs bubblewrap")
        return
    for path in named_paths(config.sandbox_hide, home_of(env)):
        if not path.exists():
            hint = f'correct "sandboxHide" in {CONFIG_FILE}, if you mean another'
            yield CheckResult("note", f"sandboxHide: {path} does not exist", hint)


def logins(folder: Path, config: Config, env: Mapping[str, str]) -> Iterator[CheckResult]:
    """Check that agents cannot read the logins of forges, and name those that are left to them."""
    home = home_of(env)
    left = [name for name in LOGIN_VARIABLES if name in without_logins(env, config.sandbox_show)]
    shown = [path.resolve() for path in named_paths(config.sandbox_show, home)]
    found = [path for path in dict.fromkeys(login_files(env, home)) if path.exists()]
    named = [file for file in found if any(one.is_relative_to(file.resolve()) for one in shown)]
    if left or named:
        what = ", ".join([*sorted(left), *map(str, named)])
        yield CheckResult("note", f"logins: left to agents by sandboxShow: {what}")
    rest = [str(file) for file in found if file not in named]
    here = boundary_here(folder, config, env)
    if rest and here is not NO_BOUNDARY and here.engine != "bubblewrap":
        hint = "only bubblewrap hides them; `cuggino help sandbox` explains what is withheld"
        yield CheckResult("note", f"logins: agents can read {', '.join(rest)}", hint)


def sandbox_of_agent(
    agent: LlmAgent, folder: Path, config: Config, env: Mapping[str, str]
) -> Iterator[CheckResult]:
    """Check whether the agent can be confined; its own sandbox counts where no view is in force."""
    found = boundary_here(folder, config, env)
    if found is NO_BOUNDARY:
        return
    imports = not all(source.network for source in config.backlog_sources)
    if not agent.capabilities.view:
        what = f"sandbox: {agent.name} cannot be started in one"
        if config.sandbox == "require":
            hint = f'use another agent, or set "sandbox" to "auto" in {CONFIG_FILE}'
            yield CheckResult("problem", f"{what}, but it is required", hint)
            return
        yield CheckResult("note", what, _VERIFIED)
    elif found.holds("implementing") and not (config.sandbox_domains or imports):
        return
    if not agent.capabilities.sandbox or config.guard == "off":
        if imports:
            yield CheckResult("note", f"{_UNLIMITED} {agent.name} for imported items", _NETWORK)
        return
    if why := agent.sandbox_unavailable():
        yield CheckResult("note", f"sandbox: commands of {agent.name} have no other: {why}")
        return
    more = f" and {len(config.sandbox_domains)} of yours" if config.sandbox_domains else ""
    what = "commands write in the project and in caches, and connect to package registries"
    yield CheckResult("ok", f"sandbox: {agent.name} brings its own ({what}{more})")
