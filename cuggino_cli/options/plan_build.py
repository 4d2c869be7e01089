"""The configuration files of `cuggino loop` (LOP-020)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from cuggino.config import PlanBuildConfig


def user_file() -> Path | None:
    """Return the user's file; None without a home folder."""
    from cuggino.config import PLAN_BUILD_CONFIG_FILE

    try:
        return Path.home() / PLAN_BUILD_CONFIG_FILE
    except RuntimeError:
        return None


def load_settings(folder: Path, custom: str | None = None) -> PlanBuildConfig:
    """Return the settings of all files; print a warning for each ignored value.

    Raises:
        ConfigError: the named file is missing or broken.
    """
    from cuggino.config import load_plan_build_config
    from cuggino_cli.screen.text import inert

    path = None if custom is None else Path(custom)
    loaded = load_plan_build_config(folder, user=user_file(), custom=path)
    for warning in loaded.warnings:
        click.echo(f"cuggino: {inert(warning)}", err=True)
    return loaded.config
