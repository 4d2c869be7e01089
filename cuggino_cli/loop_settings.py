"""The files of `cuggino loop`: where the user's own is, and what is told of them (LOP-020)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from cuggino.config.loop_config import PlanBuildConfig


def user_file() -> Path | None:
    """The user's own file; None where there is no home."""
    from cuggino.config.loop_config import LOOP_CONFIG_FILE

    try:
        return Path.home() / LOOP_CONFIG_FILE
    except RuntimeError:
        return None


def load_settings(folder: Path, custom: str | None = None) -> PlanBuildConfig:
    """The settings of all layers; what was passed over is told on standard error.

    Raises:
        ConfigError: the file that was named is missing or broken.
    """
    from cuggino.config.loop_config import load_loop_config
    from cuggino_cli.output.sanitize import inert

    path = None if custom is None else Path(custom)
    loaded = load_loop_config(folder, user=user_file(), custom=path)
    for warning in loaded.warnings:
        click.echo(f"cuggino: {inert(warning)}", err=True)
    return loaded.config
