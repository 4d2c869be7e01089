"""The check of the sandbox: which roles the system confines here, and how."""

from __future__ import annotations

from collections.abc import Iterator

from cuggino.agents import make_agent
from cuggino.config import CONFIG_FILE
from cuggino.doctor.result import CheckResult, Place, note, ok, problem
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
_UNLIMITED = "nothing limits the hosts of"
_NETWORK = "`cuggino help sandbox` explains what limits them"
_HELP = "`cuggino help sandbox` explains what it needs"


def boundary_here(place: Place) -> Boundary:
    """Return what confines the agents of a run in this project."""
    is_off = sandbox_mode(no_sandbox=False, env=place.env).is_disabled
    if is_off or place.config.sandbox == "off":
        return NO_BOUNDARY
    return probe(place.folder, home=home_of(place.env))


def roles(place: Place) -> Iterator[CheckResult]:
    """Check what confines each role on this machine. Nothing of the project is started."""
    if sandbox_mode(no_sandbox=False, env=place.env).is_disabled:
        yield note(f"off, by {NO_SANDBOX}", _VERIFIED)
        return
    if place.config.sandbox == "off":
        yield note(f'off, by "sandbox" in {CONFIG_FILE}', _VERIFIED)
        return
    found = boundary_here(place)
    held = [role for role in ROWS if found.holds(role)]
    why = f" ({found.reason})" if found.reason else ""
    what = f"{found.name} confines only the roles that look{why}" if held else f"none here{why}"
    if len(held) == len(ROWS):
        yield ok(f"{found.name} confines all roles{why}", _roles(found))
    elif place.config.sandbox == "require":
        hint = f'{_roles(found)}\n{_HELP}, or set "sandbox" to "auto" in {CONFIG_FILE}'
        yield problem(f"{what}, but it is required: a run would not start", hint)
    else:
        yield note(what, f"{_roles(found)}\n{_HELP}")


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


def in_views(place: Place) -> Iterator[CheckResult]:
    """Check that git and the program of the check work in the views of a run.

    Nothing of the project is started.
    """
    config = place.config
    if boundary_here(place) is NO_BOUNDARY:
        return
    for found in view_obstacles(place.folder, views_of(config), check_command=config.check_command):
        yield problem(found.what, found.hint)


def hidden(place: Place) -> Iterator[CheckResult]:
    """Check that the paths of `sandboxHide` exist, and that something hides them."""
    hides = place.config.sandbox_hide
    if hides and boundary_here(place).engine != "bubblewrap":
        yield note("no effect, as it needs bubblewrap")
        return
    for path in named_paths(hides, home_of(place.env)):
        if not path.exists():
            hint = f'correct "sandboxHide" in {CONFIG_FILE}, if you mean another'
            yield note(f"{path} does not exist", hint)


def logins(place: Place) -> Iterator[CheckResult]:
    """Check that agents cannot read the logins of forges, and name those that are left to them."""
    home, shows = home_of(place.env), place.config.sandbox_show
    left = [name for name in LOGIN_VARIABLES if name in without_logins(place.env, shows)]
    shown = [path.resolve() for path in named_paths(shows, home)]
    found = [path for path in dict.fromkeys(login_files(place.env, home)) if path.exists()]
    named = [file for file in found if any(one.is_relative_to(file.resolve()) for one in shown)]
    if left or named:
        what = ", ".join([*sorted(left), *map(str, named)])
        yield note(f"left to agents by sandboxShow: {what}")
    rest = [str(file) for file in found if file not in named]
    here = boundary_here(place)
    if rest and here is not NO_BOUNDARY and here.engine != "bubblewrap":
        hint = "only bubblewrap hides them; `cuggino help sandbox` explains what is withheld"
        yield note(f"agents can read {', '.join(rest)}", hint)


def of_agent(name: str, place: Place) -> Iterator[CheckResult]:
    """Check whether the agent can be confined; its own sandbox counts where no view is in force."""
    config, found = place.config, boundary_here(place)
    if found is NO_BOUNDARY:
        return
    agent = make_agent(name, cwd=place.folder, path=config.agent_path)
    imports = not all(source.network for source in config.backlog_sources)
    if not agent.capabilities.view:
        what = f"{agent.name} cannot be started in one"
        if config.sandbox == "require":
            hint = f'use another agent, or set "sandbox" to "auto" in {CONFIG_FILE}'
            yield problem(f"{what}, but it is required", hint)
            return
        yield note(what, _VERIFIED)
    elif found.holds("implementing") and not (config.sandbox_domains or imports):
        return
    if not agent.capabilities.sandbox or config.guard == "off":
        if imports:
            yield note(f"{_UNLIMITED} {agent.name} for imported items", _NETWORK)
        return
    if why := agent.sandbox_unavailable():
        yield note(f"commands of {agent.name} have no other: {why}")
        return
    more = f" and {len(config.sandbox_domains)} of yours" if config.sandbox_domains else ""
    what = "commands write in the project and in caches, and connect to package registries"
    yield ok(f"{agent.name} brings its own ({what}{more})")
