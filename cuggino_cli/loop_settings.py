"""What `cuggino loop` is told by files and options together: layers, agent, model (LOP-020)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from cuggino.config import Config
    from cuggino.config.loop_config import PlanBuildConfig

_CLAUDE_MODEL = re.compile(r"(claude-[a-z]+-\d+)\.(\d+)")

_OPTIONS = {
    "plan_prompt": "plan_prompt_path",
    "build_prompt": "build_prompt_path",
    "allow_all": "allow_all",
    "auto_commit": "auto_commit",
    "verify_after_iteration": "verify_after_iteration",
    "verify_model": "verify_model",
    "verify_build": "verify_build",
    "verify_test": "verify_test",
    "protected_branches": "protected_branches",
}
"""Of each option of the loop the setting that it is taken from."""


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


def agent_of(given: str | None, settings: PlanBuildConfig, config: Config) -> str:
    """The agent's name: that of the option, of a loop's file, or of `.cuggino.json`."""
    if given is not None:
        return given
    return settings.agent if "agent" in settings.origins else config.agent


def model_of(given: str | None, settings: PlanBuildConfig, config: Config, *, agent: str) -> str:
    """The model's name, likewise, else the built-in one; in the spelling of the agent (LOP-114)."""
    name = given or (settings.model if "model" in settings.origins else config.model)
    return _spelled(name or settings.model, agent)


def loop_options(settings: PlanBuildConfig, *, agent: str) -> dict[str, Any]:
    """What the loop takes from the settings."""
    options = {option: getattr(settings, name) for option, name in _OPTIONS.items()}
    if settings.verify_model is not None:
        options["verify_model"] = _spelled(settings.verify_model, agent)
    return options


def _spelled(model: str, agent: str) -> str:
    """Claude Code writes `claude-opus-4-5` for what others call `claude-opus-4.5`."""
    found = _CLAUDE_MODEL.fullmatch(model)
    return f"{found[1]}-{found[2]}" if found and agent == "claude" else model
