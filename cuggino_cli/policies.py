"""What bounds a run: budgets, waiting, retries, the sandbox; a word when nothing holds agents."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from cuggino.agents import LlmAgent
    from cuggino.config import Config

    _Type = click.ParamType[float]
else:
    _Type = click.ParamType

Command = TypeVar("Command", bound=Callable[..., Any])

_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?")


class Duration(_Type):
    """`8h`, `1h30m`, `90m`, `45s`, or seconds; gives seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
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
    help="Retries in a row of an agent that failed in passing.",
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


def warn_if_loose(config: Config, agent: LlmAgent) -> None:
    """A line on standard error for each thing that should hold the agent and does not."""
    from cuggino.agents import GuardedAgent, SandboxedAgent

    if config.guard == "off":
        _warn("the guard is off: agents may do whatever you may")
        return
    if not isinstance(agent, GuardedAgent):
        _warn(f"there is no guard for {agent.name}: nothing holds it to its role")
        return
    if config.guard != "full" or not config.sandbox:
        return
    if not isinstance(agent, SandboxedAgent):
        _warn(f"{agent.name} has no sandbox: its commands run in the open, the guard alone looks")
    elif why := agent.sandbox_unavailable():
        _warn(f"no sandbox here, commands run in the open and the guard alone looks: {why}")


def _warn(what: str) -> None:
    click.echo(f"cuggino: {what}", err=True)
