"""Which agent, model and options a plan/build run has, of all the places that name them.

A run as `cuggino loop` starts it::

    settings, config = load_loop_config(folder).config, load_config(folder)
    agent = chosen_agent(settings, config)
    runtime = Runtime.live(cwd=folder, config=config, agent=agent)
    options = runtime.plan_build_options(**chosen_options(settings, config, agent=agent))
    run(runtime.plan_build(options), print)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from cuggino.config.loop_config import PlanBuildConfig
from cuggino.config.model import Config

_CLAUDES = ("claude", "claude-sdk")
_CLAUDE_MODEL = re.compile(r"(claude-[a-z]+-\d+)\.(\d+)")

_SETTING_OF: Mapping[str, str] = MappingProxyType(
    {
        "plan_prompt": "plan_prompt_path",
        "build_prompt": "build_prompt_path",
        "allow_all": "allow_all",
        "auto_commit": "auto_commit",
        "verify_after_iteration": "verify_after_iteration",
        "verify_build": "verify_build",
        "verify_test": "verify_test",
        "protected_branches": "protected_branches",
    }
)
"""Of each option of the loop the setting that it is taken from."""


def chosen_agent(settings: PlanBuildConfig, config: Config, *, given: str | None = None) -> str:
    """The agent's name: the one given, that of a file of the loop, or that of `.cuggino.json`.

    What stands in no file of the loop is no choice: its default does not go before `config`.
    """
    if given is not None:
        return given
    return settings.agent if "agent" in settings.origins else config.agent


def chosen_model(
    settings: PlanBuildConfig, config: Config, *, agent: str, given: str | None = None
) -> str:
    """The model's name, found as `chosen_agent` finds the agent, else the loop's default.

    It is spelled for this `agent` (`spelled_model`).
    """
    name = given or (settings.model if "model" in settings.origins else config.model)
    return spelled_model(name or settings.model, agent=agent)


def chosen_options(
    settings: PlanBuildConfig, config: Config, *, agent: str, model: str | None = None
) -> dict[str, Any]:
    """What `PlanBuildOptions` take from the files; for `Runtime.plan_build_options`.

    A `model` that is given goes before those of the files. Of the settings, `stream` and
    `log_level` are left out: they are for who shows the events.
    """
    options = {option: getattr(settings, name) for option, name in _SETTING_OF.items()}
    verify_model = settings.verify_model
    if verify_model is not None:
        verify_model = spelled_model(verify_model, agent=agent)
    return {
        **options,
        "model": chosen_model(settings, config, agent=agent, given=model),
        "verify_model": verify_model,
    }


def spelled_model(model: str, *, agent: str) -> str:
    """The model's name as the agent writes it (LOP-114); one that is not known stays as it is.

    Claude Code, also through its SDK, writes `claude-opus-4-5` for what others call
    `claude-opus-4.5`.
    """
    found = _CLAUDE_MODEL.fullmatch(model)
    return f"{found[1]}-{found[2]}" if found and agent in _CLAUDES else model
