"""`--resume`: which run goes on, and what is not said of it anew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from cuggino_cli.completing import run_ids

_LATEST = ""

resume_option = click.option(
    "--resume",
    metavar="[ID]",
    is_flag=False,
    flag_value=_LATEST,
    help="Go on with an unfinished run: the latest, or the one whose id begins so.",
    shell_complete=run_ids,
)
"""Absent for a new run; empty for the latest one."""


def refuse_of_the_run(given: Mapping[str, Any], names: Mapping[str, str]) -> None:
    """Wrong usage: what a run that goes on keeps as it began; `names` are those of the options.

    Raises:
        click.UsageError: one of them was given.
    """
    fixed = [name for key, name in names.items() if given[key] not in (None, False)]
    if fixed:
        raise click.UsageError(f"{' and '.join(fixed)}: that is for a new run, not for --resume.")
