"""What bounds a run: budgets, waiting, retries, the sandbox; a word when nothing holds agents."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from cuggino.agents import Candidate, LlmAgent, Role
    from cuggino.config import Config

    _Type = click.ParamType[float]
else:
    _Type = click.ParamType

Command = TypeVar("Command", bound=Callable[..., Any])

AGENT_HELP = (
    "A name of `cuggino agents`, scripted:FILE, replay:FILE or package.module:Class. Roles keep "
    'the agent that "agents" in .cuggino.json names, but all are replayed.'
)
MODEL_HELP = (
    'The model, in place of the configured one. Roles keep that of "agents" in .cuggino.json.'
)
CODING_ROLES: tuple[Role, ...] = ("planning", "implementing", "reviewing")
"""The roles of the coding loop."""

_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?")


class Duration(_Type):
    """`8h`, `1h30m`, `90m`, `45s`, or seconds; gives seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The seconds that the text says; a text that says none is wrong usage."""
        if not isinstance(value, str):
            return float(value)
        found = _DURATION.fullmatch(value.strip())
        if found is None or not any(found.groups()):
            self.fail(f"{value!r} is no duration such as 8h, 1h30m, 90m or 45s.", param, ctx)
        hours, minutes, seconds = (int(part or 0) for part in found.groups())
        return hours * 3600.0 + minutes * 60.0 + seconds


_BUDGET = (
    click.option(
        "--budget",
        type=click.FloatRange(min=0, min_open=True),
        metavar="USD",
        help="US dollars that all agents of the run may spend together.",
    ),
    click.option(
        "--max-tokens",
        type=click.IntRange(min=1),
        metavar="N",
        help="Tokens that all agents of the run may use together.",
    ),
    click.option(
        "--max-duration",
        type=Duration(),
        metavar="TIME",
        help="How long the run may take, such as 8h or 90m.",
    ),
    click.option(
        "--wait-for-quota/--no-wait-for-quota",
        default=None,
        help="Wait until a usage limit is lifted, then go on.",
    ),
)
_RETRIES = click.option(
    "--max-retries",
    type=click.IntRange(min=0),
    metavar="N",
    help="Retries in a row of an agent that failed in passing (overload, a lost connection).",
)
_SANDBOX = click.option(
    "--no-sandbox",
    is_flag=True,
    default=None,
    help="Run the commands of agents in the open, without the system's sandbox.",
)


def policy_options(command: Command) -> Command:
    """Add `--budget`, `--max-tokens`, `--max-duration`, `--wait-for-quota`, `--max-retries`.

    And `--no-sandbox`. Each is absent unless given, so that the configuration holds
    (`with_policies`).
    """
    return _with(command, *_BUDGET, _RETRIES, _SANDBOX)


def policy_options_but_retries(command: Command) -> Command:
    """The same for a loop that has retries of its own."""
    return _with(command, *_BUDGET, _SANDBOX)


def _with(command: Command, *options: Callable[[Command], Command]) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def with_policies(config: Config, given: dict[str, Any]) -> Config:
    """The configuration with the options that were given.

    `--no-sandbox` and its environment variable turn the sandbox off, with a warning on standard
    error (AUT-151, AUT-152).

    Raises:
        ConfigError: a value cannot be used.
    """
    from cuggino.config import changed_config
    from cuggino.security.sandbox import sandbox_mode, start_warnings

    changes = {name: value for name, value in given.items() if value is not None}
    mode = sandbox_mode(no_sandbox=changes.pop("no_sandbox", False), env=os.environ)
    if mode.is_disabled:
        changes["sandbox"] = False
    settled = changed_config(config, changes)
    destructive = settled.guard == "full" and settled.allow_destructive
    for line in start_warnings(mode, allow_destructive=destructive):
        click.echo(line, err=True)
    return settled


def warn_if_loose(config: Config, agent: LlmAgent, *, roles: Sequence[Role]) -> None:
    """A line on standard error for each thing that should hold an agent and does not.

    Looked at are the agents of these roles. Of several, each that is not there is told as well.
    """
    from cuggino.agents import RoutedAgent
    from cuggino.agents.cassettes import ReplayAgent

    if isinstance(agent, ReplayAgent):
        return  # of a recording no tool runs
    if config.guard == "off":
        _warn("the guard is off: agents may do whatever you may")
    if not isinstance(agent, RoutedAgent):
        _warn_of(config, agent, agent.name)
        return
    for candidate in agent.candidates(roles):
        chains = {role: agent.candidates_for(role) for role in roles}
        if any(len(chain) > 1 and candidate in chain for chain in chains.values()):
            _warn_if_missing(candidate)
        its = [role for role, chain in chains.items() if candidate in chain]
        _warn_of(config, candidate.agent, f"{candidate.name} ({', '.join(its)})")


def _warn_of(config: Config, agent: LlmAgent, name: str) -> None:
    from cuggino.agents import GuardedAgent, SandboxedAgent

    if config.guard == "off":
        return
    if not isinstance(agent, GuardedAgent):
        _warn(f"there is no guard for {name}: nothing holds it to its role")
        return
    if config.guard != "full" or not config.sandbox:
        return
    if not isinstance(agent, SandboxedAgent):
        _warn(f"{name} has no sandbox: its commands run in the open, the guard alone looks")
    elif why := agent.sandbox_unavailable():
        _warn(f"no sandbox here, commands run in the open and the guard alone looks: {why}")


def _warn_if_missing(candidate: Candidate) -> None:
    from cuggino.errors import AgentNotFound

    try:
        candidate.agent.check()
    except AgentNotFound as error:
        _warn(f"{candidate.name} cannot work: {error.message}")


def _warn(what: str) -> None:
    click.echo(f"cuggino: {what}", err=True)
