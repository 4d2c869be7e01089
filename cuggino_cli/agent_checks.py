"""Which agents `cuggino doctor` looks at besides the usual one, and what for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cuggino.config import Config
from cuggino_cli.finding import Finding

FALLBACK = "fall-back"


class Other(NamedTuple):
    """An agent that the configuration names besides the usual one."""

    name: str
    path: str | None
    purpose: str
    """The roles that it is for, or that it takes over from others."""


def other_agents(config: Config) -> list[Other]:
    """Each once, in the order in which they are named, those that take over last."""
    purposes: dict[tuple[str, str | None], dict[str, None]] = {(config.agent, None): {}}
    for role, chosen in config.agents.items():
        purposes.setdefault((chosen.agent or config.agent, chosen.path), {})[role] = None
    others = [one for chosen in config.agents.values() for one in chosen.fallback or ()]
    for one in (*config.fallback, *others):
        purposes.setdefault((one.agent, one.path), {})[FALLBACK] = None
    del purposes[config.agent, None]
    return [Other(name, path, ", ".join(purpose)) for (name, path), purpose in purposes.items()]


def told_of(other: Other, findings: Iterator[Finding]) -> Iterator[Finding]:
    """The findings about that agent, each with what it is for; what is as with any is left out."""
    for finding in findings:
        topic, _, rest = finding.what.partition(":")
        if topic == "permissions" and finding.status != "problem":
            continue
        hint = None if finding.status == "ok" else finding.hint
        yield Finding(finding.status, f"{topic} ({other.purpose}):{rest}", hint)
