"""The configuration files of `cuggino loop` (LOP-020)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cuggino.config import LoadedPlanBuildConfig


def user_file() -> Path | None:
    """Return the user's file; None without a home folder."""
    from cuggino.config import PLAN_BUILD_CONFIG_FILE

    try:
        return Path.home() / PLAN_BUILD_CONFIG_FILE
    except RuntimeError:
        return None


def load_settings(folder: Path, custom: str | None = None) -> LoadedPlanBuildConfig:
    """Return the settings of all files.

    Raises:
        ConfigError: a file is unusable, or the named one is missing.
    """
    from cuggino.config import load_plan_build_config

    path = None if custom is None else Path(custom)
    return load_plan_build_config(folder, user=user_file(), custom=path)
