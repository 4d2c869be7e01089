"""Scripted agents that hit a usage limit, and configurations with fallbacks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cuggino.events import AgentFellBack, Event
from cuggino.testing import InMemoryAgent
from tests.cli.rounds import agent, plans

LIMITED = (
    {"limit": {"status": "rejected", "resets_in": 3600}},
    {"fail": {"status": 429, "text": "You've hit your limit"}},
)
"""The steps of a session that meets a usage limit of an hour."""
PLANS = plans("# Plan\n\n- [ ] one\n", cost_usd=0.01)
IMPLEMENTS = agent(
    "implementing",
    {"write": "whole.txt", "text": "by b"},
    {"say": "<DONE>all of it</DONE>"},
    cost_usd=0.03,
)
HALF = agent("implementing", {"write": "half.txt", "text": "by a"}, *LIMITED, cost_usd=0.02)

Lines = Callable[[], list[Event]]
"""Gives the events that `--json` has printed since."""


def scenarios(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")


def typed(folder: Path, text: str) -> None:
    """Return a configuration as a user would write it."""
    (folder / ".cuggino.json").write_text(text, encoding="utf-8")


def fallen(events: list[Event]) -> list[tuple[str, str, str, str]]:
    return [
        (event.role, event.from_agent, event.to_agent, event.reason)
        for event in events
        if isinstance(event, AgentFellBack)
    ]


class Loose(InMemoryAgent):
    """An agent without guard support, addressed by import path."""

    def __init__(self) -> None:
        super().__init__({}, name="loose")
