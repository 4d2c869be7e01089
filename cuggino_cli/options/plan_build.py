"""The configuration files of `cuggino loop` (LOP-020)."""

from __future__ import annotations

from pathlib import Path

from cuggino.config import PLAN_BUILD_CONFIG_FILE, LoadedPlanBuildConfig, load_plan_build_config


def user_file() -> Path | None:
    """Return the user's file; None without a home folder."""
    try:
        return Path.home() / PLAN_BUILD_CONFIG_FILE
    except RuntimeError:
        return None


def load_settings(folder: Path, custom: str | None = None) -> LoadedPlanBuildConfig:
    """Return the settings of all files.

    Raises:
        ConfigError: a file is unusable, or the named one is missing.
    """
    path = None if custom is None else Path(custom)
    return load_plan_build_config(folder, user=user_file(), custom=path)
