"""`--resume`, and the options that exclude it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from cuggino_cli.options.completing import run_ids

_LATEST = ""

resume_option = click.option(
    "--resume",
    metavar="[ID]",
    is_flag=False,
    flag_value=_LATEST,
    help="Resume an unfinished run: the latest, or the one whose id begins so.",
    shell_complete=run_ids,
)
"""None for a new run; empty for the latest run."""


def refuse_of_the_run(given: Mapping[str, Any], names: Mapping[str, str]) -> None:
    """Refuse options that a resumed run keeps from its start; `names` maps them to their flags.

    Raises:
        click.UsageError: one was given.
    """
    fixed = [name for key, name in names.items() if given[key] not in (None, False)]
    if fixed:
        raise click.UsageError(f"{' and '.join(fixed)}: only for a new run, not with --resume.")
