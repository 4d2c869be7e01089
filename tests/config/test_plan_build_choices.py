"""Agent, model and options of a plan/build run, from its files and arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino import Runtime
from cuggino.config import Config
from cuggino.config.plan_build import (
    PlanBuildConfig,
    chosen_agent,
    chosen_model,
    chosen_options,
    spelled_model,
)
from cuggino.loops import PlanBuildOptions
from tests.vectors import each


@pytest.mark.parametrize(
    ("expected", "given", "own", "shared", "agent"),
    [
        ("claude-opus-4-5", None, None, None, "claude"),
        ("claude-opus-4.5", None, None, None, "copilot"),
        ("of-cuggino", None, None, "of-cuggino", "claude"),
        ("claude-sonnet-4-5", None, "claude-sonnet-4.5", "of-cuggino", "claude"),
        ("claude-sonnet-4", "claude-sonnet-4", "own", None, "claude"),
        ("gpt-5.1", "gpt-5.1", None, None, "claude"),
    ],
)
def test_the_model(
    expected: str, given: str | None, own: str | None, shared: str | None, agent: str
) -> None:
    """The most specific model applies, in the agent's spelling (LOP-114)."""
    settings = PlanBuildConfig()
    if own is not None:
        settings = PlanBuildConfig(model=own)
    assert expected == chosen_model(settings, Config(model=shared), agent=agent, given=given)


def test_the_agent() -> None:
    """The most specific agent applies."""
    own = PlanBuildConfig(agent="own")
    shared = Config(agent="scripted:x.toml")
    agents = [chosen_agent(s, shared) for s in (own, PlanBuildConfig())]
    assert ["own", "scripted:x.toml"] == agents
    assert "given" == chosen_agent(own, shared, given="given")


@each(
    "expected, model, agent",
    [
        ("claude-opus-4-5", "claude-opus-4.5", "claude"),
        ("claude-opus-4-5", "claude-opus-4-5", "claude"),
        ("claude-opus-4.5", "claude-opus-4.5", "copilot"),
        ("claude-opus-4.5-fast", "claude-opus-4.5-fast", "claude"),
        ("my.model", "my.model", "claude"),
        ("", "", "claude"),
    ],
)
def test_spelling(expected: str, model: str, agent: str) -> None:
    """Claude Code uses a dash for the dot in a Claude model; other names stay (LOP-114)."""
    assert expected == spelled_model(model, agent=agent)


def test_the_options() -> None:
    """Every relevant setting reaches the run, with the verifier's model respelled."""
    settings = PlanBuildConfig(
        plan_prompt="p.md",
        build_prompt="b.md",
        allow_all=False,
        auto_commit=True,
        verify_after_iteration=False,
        verify_model="claude-haiku-4.5",
        verify_build="make",
        verify_test="make check",
        protected_branches=("prod",),
    )
    expected = {
        "allow_all": False,
        "auto_commit": True,
        "verify_after_iteration": False,
        "verify_build": "make",
        "verify_test": "make check",
        "protected_branches": ("prod",),
        "plan_prompt": "p.md",
        "build_prompt": "b.md",
        "model": "claude-sonnet-4-5",
        "verify_model": "claude-haiku-4-5",
    }
    options = chosen_options(settings, Config(), agent="claude", model="claude-sonnet-4.5")
    assert expected == options
    assert options.keys() <= PlanBuildOptions.model_fields.keys()


def test_the_default_options(tmp_path: Path) -> None:
    """Without files a run has the runtime's defaults, with the model respelled."""
    runtime = Runtime.live(cwd=tmp_path, config=Config(), agent="claude")
    options = chosen_options(PlanBuildConfig(), runtime.config, agent="claude")
    made = runtime.plan_build_options(**options)
    assert "claude-opus-4-5" == made.model
    assert runtime.plan_build_options() == made.model_copy(update={"model": None})
