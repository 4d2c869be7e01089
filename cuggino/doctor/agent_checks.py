"""Checks of the agents of a project: program, login, permissions, guard, sandbox, prices."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, get_args

from cuggino.agents import Role, configured_agent, find_bash, make_agent
from cuggino.config import CONFIG_FILE, configured_policy
from cuggino.doctor.agents import inspect_agent
from cuggino.doctor.project_code import NOT_STARTED, why_not_started
from cuggino.doctor.result import CheckResult, Place, about, note, ok, problem
from cuggino.doctor.sandbox import boundary_here, of_agent
from cuggino.domain import Pricing, budget_unenforceable
from cuggino.errors import CugginoError
from cuggino.guard import find_shfmt
from cuggino.logins import login_answer
from cuggino.stages import unpriceable

_TURN_OFF = f'set "guard" to "off" in {CONFIG_FILE}'
_ASKED = "other calls are checked after they ran; a sandbox would confine them"
HONEST = "advice only: what a script does is not checked; that is for the sandbox"
"""The hint of a working guard: it is not a security boundary."""


class _Agent(NamedTuple):
    name: str
    path: str | None
    purpose: str
    """Its roles, or `fall-back`; "" for the agent of all other roles."""


def check_agents(place: Place) -> Iterator[CheckResult]:
    """Check the agent, and those of roles and fallbacks, unless one is named instead."""
    for one in _agents(place):
        its = replace(place, config=place.config.model_copy(update={"agent_path": one.path}))
        for result in _check_agent(one.name, its):
            if not one.purpose:
                yield result
                continue
            topic, _, rest = result.what.partition(":")
            if topic != "permissions" or result.status == "problem":
                hint = None if result.status == "ok" else result.hint
                yield CheckResult(result.status, f"{topic} ({one.purpose}):{rest}", hint)


def _agents(place: Place) -> list[_Agent]:
    """Return each agent once, in the order of the configuration, fallbacks last."""
    config = place.config
    if place.agent is not None:
        return [_Agent(place.agent, config.agent_path if place.is_configured else None, "")]
    if not place.is_configured:
        return []
    purposes: dict[tuple[str, str | None], dict[str, None]] = {(config.agent, None): {}}
    for role, chosen in config.agents.items():
        purposes.setdefault((chosen.agent or config.agent, chosen.path), {})[role] = None
    others = [one for chosen in config.agents.values() for one in chosen.fallback or ()]
    for one in (*config.fallback, *others):
        purposes.setdefault((one.agent, one.path), {})["fall-back"] = None
    del purposes[config.agent, None]
    found = (_Agent(name, path, ", ".join(why)) for (name, path), why in purposes.items())
    return [_Agent(config.agent, config.agent_path, ""), *found]


def _check_agent(name: str, place: Place) -> Iterator[CheckResult]:
    """Check one agent, unless it is code of the project."""
    if why := _why_not(name, place.config.agent_path, place):
        yield note(f"agent: {name} is not checked: {why}", NOT_STARTED)
        return
    found = yield from check_program(name, place.folder, place.config.agent_path)
    guarded = place.is_configured and place.config.guard != "off"
    yield permissions(name, env=place.env, uid=place.uid, guarded=guarded)
    if place.is_configured and found.status == "ok":
        yield from about("guard", lambda: guard(name, place))
        yield from about("sandbox", lambda: of_agent(name, place))


def _why_not(name: str, path: str | None, place: Place) -> str:
    return why_not_started(
        name,
        folder=place.folder,
        path=path,
        env=place.env,
        trusted=place.trusted,
        named=place.agent is not None,
    )


def check_program(
    name: str, folder: Path, path: str | None
) -> Generator[CheckResult, None, CheckResult]:
    """Check that the agent is installed and new enough, and that it is logged in.

    Both are asked at once. Return the first result.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        asked = pool.submit(_login, name, folder, path)
        report = inspect_agent(name, folder=folder, path=path)
        found = ok(f"agent: {name} {report.version}")
        if report.state != "ready":
            found = problem(f"agent: {report.problem}", report.hint)
        yield found
        if found.status == "ok" and (login := asked.result()) is not None:
            yield login
    return found


def _login(name: str, folder: Path, path: str | None) -> CheckResult | None:
    """Check that the agent is logged in; None for one that is no program."""
    try:
        agent = make_agent(name, cwd=folder, path=path)
        check = agent.login_check(folder)
    except CugginoError:  # its program is reported as missing
        return None
    if check is None and not agent.environments:
        return None
    answer = login_answer(check) if check is not None else None
    if check is None or answer is None:
        return note(f"login: unknown, as {name} does not report it")
    if answer:
        return ok(f"login: {name} is logged in")
    return problem(f"login: {name} is not logged in", check.hint)


def permissions(name: str, *, env: Mapping[str, str], uid: int, guarded: bool) -> CheckResult:
    """Check that the agent will work without permission prompts.

    As root, Claude Code refuses to skip them unless the environment declares a sandbox. A guarded
    run does not need to skip them: the guard answers.
    """
    if name != "claude" or uid != 0:
        return ok("permissions: nothing in the way")
    # Claude Code accepts no other value of IS_SANDBOX.
    if env.get("IS_SANDBOX") == "1" or env.get("CLAUDE_CODE_BUBBLEWRAP"):
        return ok("permissions: root, in a sandbox by the environment")
    hint = "run as a normal user, or set IS_SANDBOX=1 inside a container"
    if guarded:
        return note("permissions: as root, claude refuses `cuggino plan`", hint)
    return problem("permissions: claude refuses to skip permissions as root", hint)


def guard(name: str, place: Place) -> Iterator[CheckResult]:
    """Check that the guard works for an installed agent: parser, shell, version, one trial call."""
    config = place.config
    if config.guard == "off":
        turn_on = f'set "guard" to "roles" in {CONFIG_FILE}'
        yield note("off, an agent may do whatever you may", turn_on)
        return
    agent = make_agent(name, cwd=place.folder, path=config.agent_path)
    if agent.capabilities.guard == "none":
        what = f"{name} is unguarded, nothing would limit it to its role"
        yield problem(what, f"use claude, or {_TURN_OFF}")
        return
    is_open = not boundary_here(place).holds("implementing")
    asks = agent.capabilities.guard == "asked" and is_open
    try:
        shfmt, bash = find_shfmt(), find_bash(place.env)
        # Codex starts for it, in a folder that can configure nothing.
        with TemporaryDirectory(prefix="cuggino-session-empty-") as empty:
            # An agent that is asked starts nothing; without a sandbox, the project counts.
            project = (place.folder if asks else Path(empty)).resolve()
            policy = configured_policy(config, "implementing", project=project, level=config.guard)
            agent.check_guard(policy)
    except CugginoError as error:
        hint = error.hint or _TURN_OFF
        yield problem(error.message, hint if '"guard"' in hint else f"{hint}, or {_TURN_OFF}")
        return
    if asks:
        yield note(f"{config.guard}, but only for the calls that {name} asks about", _ASKED)
    else:
        yield ok(f"{config.guard} ({shfmt}, {bash})", HONEST)


def budget(place: Place) -> Iterator[CheckResult]:
    """Check that a budget in dollars can hold, unless an agent may not be loaded."""
    config = place.config
    pricing = Pricing(config.price_as)
    pricing.check()
    if config.budget is None or any(_why_not(one.name, one.path, place) for one in _agents(place)):
        return
    roles = get_args(Role)
    try:
        chosen = configured_agent(config, cwd=place.folder, agent=place.agent)
    except CugginoError:
        return  # the check of the agent reports it
    if unknown := next(unpriceable(chosen, roles, model=config.model, pricing=pricing), None):
        raise budget_unenforceable(unknown, config.budget)
    silent = {one.name: one for role in roles for one in chosen.agents_for(role)}
    for name, one in silent.items():
        if one.capabilities.cost == "none":
            what = f"{name} reports neither dollars nor tokens, so its first session ends the run"
            yield note(what, 'limit the run with "maxDuration" instead')
        elif one.capabilities.cost == "tokens" and config.price_as is None:
            what = f"{name} reports no dollars, so its tokens are priced by its model"
            hint = 'set "priceAs" to a model that costs about the same'
            yield note(f"{what}; an unknown model ends the run", hint)
