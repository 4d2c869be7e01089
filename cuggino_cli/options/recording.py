"""`--record` and `--speed`, which every loop command takes."""

from __future__ import annotations

import functools
import math
from typing import Any, cast

import click

from cuggino_cli.options.supervision import Command, FloatType, with_options

AT_ONCE = "max"


class Speed(FloatType):
    """A replay speed; `max`, without pauses, is 0."""

    name = "speed"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Parse the factor; any other text is a usage error."""
        if value == AT_ONCE:
            return 0.0
        try:
            speed = float(value)
        except ValueError:
            speed = math.nan
        if not (math.isfinite(speed) and speed >= 0):
            self.fail(f"{value!r} is not a speed such as 1, 2.5 or {AT_ONCE}.", param, ctx)
        return speed


def recording_options(command: Command) -> Command:
    """Add `--record` and `--speed`, given as one `recording` argument.

    It has the keywords of `Runtime.live`.
    """

    @functools.wraps(command)
    def collected(*, record: str | None, speed: float | None, **kwargs: Any) -> Any:
        return command(recording={"record": record, "speed": speed}, **kwargs)

    return with_options(
        cast("Command", collected),
        click.option(
            "--record",
            metavar="FILE",
            help="Record all sessions of agents to a new file, for --agent replay:FILE.",
        ),
        click.option(
            "--speed",
            type=Speed(),
            metavar="X",
            help=f"With --agent replay:FILE: 1 is as recorded, 10 ten times as fast, {AT_ONCE}, "
            "the default, without pauses.",
        ),
    )
