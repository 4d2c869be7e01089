"""Agents that the configuration names besides the default one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cuggino.config import Config
from cuggino.doctor.result import CheckResult

FALLBACK = "fall-back"


class Other(NamedTuple):
    """An agent of a role, or a fallback."""

    name: str
    path: str | None
    purpose: str
    """Its roles, or `fall-back`."""


def other_agents(config: Config) -> list[Other]:
    """Return each agent once, in the order of the configuration, fallbacks last."""
    purposes: dict[tuple[str, str | None], dict[str, None]] = {(config.agent, None): {}}
    for role, chosen in config.agents.items():
        purposes.setdefault((chosen.agent or config.agent, chosen.path), {})[role] = None
    others = [one for chosen in config.agents.values() for one in chosen.fallback or ()]
    for one in (*config.fallback, *others):
        purposes.setdefault((one.agent, one.path), {})[FALLBACK] = None
    del purposes[config.agent, None]
    return [Other(name, path, ", ".join(purpose)) for (name, path), purpose in purposes.items()]


def labeled(other: Other, results: Iterator[CheckResult]) -> Iterator[CheckResult]:
    """Add the agent's purpose to each result; drop permissions that are no problem."""
    for result in results:
        topic, _, rest = result.what.partition(":")
        if topic == "permissions" and result.status != "problem":
            continue
        hint = None if result.status == "ok" else result.hint
        yield CheckResult(result.status, f"{topic} ({other.purpose}):{rest}", hint)
