"""What bounds a run: the options for budgets, waiting and retries; a word when nothing guards."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
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


def policy_options(command: Command) -> Command:
    """Add `--budget`, `--max-tokens`, `--max-duration`, `--wait-for-quota`, `--max-retries`.

    Each is absent unless given, so that the configuration holds (`with_policies`).
    """
    for option in reversed(
        (
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
            click.option(
                "--max-retries",
                type=click.IntRange(min=0),
                metavar="N",
                help="Retries in a row of an agent that failed in passing.",
            ),
        )
    ):
        command = option(command)
    return command


def with_policies(config: Config, given: dict[str, Any]) -> Config:
    """The configuration with the options that were given.

    Raises:
        ConfigError: a value cannot be used.
    """
    from cuggino.config import changed_config

    return changed_config(
        config, {name: value for name, value in given.items() if value is not None}
    )


def warn_if_unguarded(config: Config) -> None:
    """One line on standard error when the guard is off: nothing holds the agents to their roles."""
    if config.guard == "off":
        click.echo("cuggino: the guard is off: agents may do whatever you may", err=True)
