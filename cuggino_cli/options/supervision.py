"""Limits of a run, the sandbox, and warnings about unguarded agents."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cuggino.agents import Candidate, LlmAgent, Role, RoutedAgent, agent_entries
from cuggino.agents.cassettes import ReplayAgent
from cuggino.config import Config, changed_config
from cuggino.errors import AgentNotFound
from cuggino.guard import NO_SANDBOX, sandbox_mode, start_warnings
from cuggino.operators import parse_duration
from cuggino.sandbox import home_of, probe
from cuggino_cli.options.completing import completing
from cuggino_cli.options.project import project_folder

if TYPE_CHECKING:
    FloatType = click.ParamType[float]
else:
    FloatType = click.ParamType

Command = TypeVar("Command", bound=Callable[..., Any])

_OPEN = "Warning: the sandbox is off ({by}): the system does not keep agents from writing anywhere."

AGENT_HELP = (
    "A name of `cuggino agents`, scripted:FILE, replay:FILE or package.module:Class. Roles keep "
    'the agent that "agents" in .cuggino.json names, but all are replayed.'
)
agent_names = completing(
    lambda: [*(entry.name for entry in agent_entries()), "scripted:", "replay:"]
)
"""Completes the name of an agent."""
MODEL_HELP = (
    'The model, in place of the configured one. Roles keep that of "agents" in .cuggino.json.'
)
CODING_ROLES: tuple[Role, ...] = ("planning", "implementing", "reviewing")
"""The roles of the coding loop."""


class Duration(FloatType):
    """A duration such as `8h`, `1h30m`, `90m` or `45s`, in seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the seconds; an invalid duration is a usage error."""
        try:
            return parse_duration(value)
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)


class Dollars(FloatType):
    """An amount of US dollars, above 0."""

    name = "dollars"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Parse the amount; anything else is a usage error."""
        try:
            amount = float(str(value).removeprefix("$"))
        except ValueError:
            amount = math.nan
        if not (math.isfinite(amount) and amount > 0):
            self.fail(f"{value!r} is not an amount of US dollars such as 5 or 2.50.", param, ctx)
        return amount


_BUDGET = (
    click.option(
        "--budget",
        type=Dollars(),
        metavar="USD",
        help="Maximum cost of the run, in US dollars; estimated where an agent reports none.",
    ),
    click.option(
        "--price-as",
        metavar="MODEL",
        help="The model that prices models without a known price, such as claude-sonnet-4-5.",
    ),
    click.option(
        "--max-tokens",
        type=click.IntRange(min=1),
        metavar="N",
        help="Maximum number of tokens of the run, weighted by price: input 1, cache read 0.1, "
        "cache write 1.25, output 5 (countTokens).",
    ),
    click.option(
        "--max-duration",
        type=Duration(),
        metavar="TIME",
        help="Maximum duration of the run, such as 8h or 90m.",
    ),
    click.option(
        "--wait-for-quota/--no-wait-for-quota",
        default=None,
        help="Wait until a usage limit is lifted, then continue.",
    ),
    click.option(
        "--quota-reserve",
        type=click.FloatRange(min=0, max=1, max_open=True),
        metavar="SHARE",
        help="Share of each usage window to keep for yourself, such as 0.2.",
    ),
    click.option(
        "--overage",
        type=click.Choice(["pay", "stop"]),
        help="Beyond a usage limit that the account pays for: continue, or stop.",
    ),
)
_START = (
    click.option(
        "--notify-on",
        metavar="LIST",
        help="When to notify, such as end,parked,quota (`cuggino help loops Notifications`).",
    ),
    click.option(
        "--no-login-check",
        "login_check",
        flag_value=False,
        default=None,
        help="Start without checking the agent's login.",
    ),
)
_RETRIES = click.option(
    "--max-retries",
    type=click.IntRange(min=0),
    metavar="N",
    help="Retries in a row after a transient failure (overload, a lost connection).",
)
_SANDBOX = (
    click.option(
        "--sandbox",
        type=click.Choice(["auto", "require", "off"]),
        help="Confine each role to what it may write: where supported, or not start elsewhere.",
    ),
    click.option(
        "--no-sandbox",
        is_flag=True,
        default=None,
        help="The same as `--sandbox off`.",
    ),
)


def approval_options(command: Command) -> Command:
    """Add `--approve` and `--approve-within`, for the coding loop; None unless given."""
    return with_options(
        command,
        click.option(
            "--approve",
            metavar="LIST",
            help="What waits for your approval: plan,landing,spend:20 (`cuggino help control`).",
        ),
        click.option(
            "--approve-within",
            metavar="TIME",
            help="The longest wait for it, such as 8h; then approveElse counts.",
        ),
    )


def dirty_option(command: Command) -> Command:
    """Add `--dirty`, for a loop that commits; None unless given (`with_policies`)."""
    option = click.option(
        "--dirty",
        type=click.Choice(["keep", "commit", "refuse"]),
        help="Files with uncommitted changes: keep them out of commits, commit them too, or do not "
        "start.",
    )
    return option(command)


def gate_options(command: Command) -> Command:
    """Add `--gate`, `--baseline` and `--attempts`, for the coding loop; None unless given."""
    return with_options(
        command,
        click.option(
            "--gate",
            type=click.Choice(["context", "block", "clean"]),
            help="Whether a failing check command blocks an approval; clean: also on a checkout "
            "of HEAD.",
        ),
        click.option(
            "--baseline",
            type=click.Choice(["run", "skip", "must-pass"]),
            help="The check command before the first agent: run it, skip it, or end unless it "
            "passes.",
        ),
        click.option(
            "--attempts",
            type=click.IntRange(min=1, max=8),
            metavar="N",
            help="Attempts side by side, each in its own clone; the first that passes check and "
            "review lands. With --hands: at each task (`cuggino help attempts`).",
        ),
    )


def policy_options(command: Command) -> Command:
    """Add `--budget`, `--price-as`, `--max-tokens`, `--max-duration`, `--wait-for-quota`.

    And `--quota-reserve`, `--overage`, `--max-retries`, `--sandbox`, `--no-sandbox`,
    `--notify-on`, `--no-login-check`. Each is None unless given, so that the
    configuration applies (`with_policies`).
    """
    return with_options(command, *_BUDGET, _RETRIES, *_SANDBOX, *_START)


def policy_options_but_retries(command: Command) -> Command:
    """Add the same options without `--max-retries`, for a loop that has its own."""
    return with_options(command, *_BUDGET, *_SANDBOX, *_START)


def with_options(command: Command, *options: Callable[[Command], Command]) -> Command:
    """Add the options to the command, in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def with_policies(config: Config, given: dict[str, Any], *, autonoe_words: bool = False) -> Config:
    """Return the configuration with the given options.

    `--no-sandbox` and its environment variable turn the sandbox off, with a warning on standard
    error (AUT-151), with `autonoe_words` in the words of Autonoe (AUT-152).

    Raises:
        ConfigError: a value is invalid.
    """
    changes = {name: value for name, value in given.items() if value is not None}
    if (occasions := changes.pop("notify_on", None)) is not None:
        settings = config.notifications.model_dump()
        words = [word.strip().replace("-", "_") for word in occasions.split(",")]
        changes["notify"] = {**settings, "on": [word for word in words if word]}
    if (approve := changes.pop("approve", None)) is not None:
        changes["approve"] = [word.strip() for word in approve.split(",") if word.strip()]
    mode = sandbox_mode(no_sandbox=changes.pop("no_sandbox", False), env=os.environ)
    if mode.is_disabled:
        changes["sandbox"] = "off"
    settled = changed_config(config, changes)
    destructive = settled.guard == "full" and settled.allow_destructive
    warnings = start_warnings(mode, allow_destructive=destructive)
    if mode.is_disabled and not autonoe_words:
        by = "--no-sandbox" if mode.source == "cli" else NO_SANDBOX
        warnings = (_OPEN.format(by=by), *warnings[1:])
    for line in warnings:
        click.echo(line, err=True)
    return settled


def warn_if_loose(config: Config, agent: LlmAgent, *, roles: Sequence[Role]) -> None:
    """Print a warning for each agent that runs unguarded or unsandboxed.

    Only agents of these roles are checked. Of several agents, missing ones are reported too.
    """
    router = _as_router(agent)
    if agent.is_router and router is None and isinstance(agent, ReplayAgent):
        return  # a replay runs no tools
    if config.guard == "off":
        only = "agents may do whatever you may"
        if config.sandbox != "off":
            only = "only the sandbox limits what agents may do"
        _warn(f"the guard is off: {only}")
    each = {one.name: one for role in roles for one in agent.agents_for(role)}
    if config.sandbox == "auto" and not any(one.capabilities.view for one in each.values()):
        # Otherwise an event of the run names the roles that are not confined.
        _warn(f"{', '.join(each)} cannot run in a sandbox: changes beyond a role are put back")
    if router is None:
        _warn_of(config, agent, agent.name, roles)
        return
    for candidate in router.candidates(roles):
        chains = {role: router.candidates_for(role) for role in roles}
        if any(len(chain) > 1 and candidate in chain for chain in chains.values()):
            _warn_if_missing(candidate)
        its = [role for role, chain in chains.items() if candidate in chain]
        _warn_of(config, candidate.agent, f"{candidate.name} ({', '.join(its)})", its)


def _as_router(agent: LlmAgent) -> RoutedAgent | None:
    """Return the agent if it is a router itself; a single agent loads no router."""
    if not agent.is_router:
        return None
    return agent if isinstance(agent, RoutedAgent) else None


def _warn_of(config: Config, agent: LlmAgent, name: str, roles: Sequence[Role]) -> None:
    if config.guard == "off":
        return
    if agent.capabilities.guard == "asked" and not _are_confined(config, roles):
        _warn(f"{name} decides which calls it asks about: others are checked after they ran")
    if agent.capabilities.guard == "none":
        _warn(f"{name} is unguarded: nothing limits it to its role")


def _are_confined(config: Config, roles: Sequence[Role]) -> bool:
    """Return whether the system confines these roles here."""
    if config.sandbox == "off":
        return False
    boundary = probe(project_folder(), home=home_of(os.environ))
    return all(boundary.holds(role) for role in roles)


def _warn_if_missing(candidate: Candidate) -> None:
    try:
        candidate.agent.check()
    except AgentNotFound as error:
        _warn(f"{candidate.name} cannot work: {error.message}")


def _warn(what: str) -> None:
    click.echo(f"cuggino: {what}", err=True)
