"""The agents of a project, by its configuration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cuggino.agents.candidates import Candidate
from cuggino.agents.protocol import LlmAgent, RoutingAgent
from cuggino.agents.registry import make_agent
from cuggino.agents.routing import RoutedAgent
from cuggino.config import CONFIG_FILE, Config, FallbackAgent
from cuggino.errors import ConfigError


def configured_agent(config: Config, *, cwd: Path, agent: str | LlmAgent | None = None) -> LlmAgent:
    """The agent that works in this project: a `RoutedAgent` where there is more than one.

    `agent`, or the configured one, is the usual one: that of the roles for which `agents` names no
    other, with the model of the session's options. A `RoutedAgent` stays as it is.

    Raises:
        ConfigError: one of them cannot be made; it is told where it is named.
    """
    usual = agent if agent is not None else config.agent
    # A path that stands beside the name of an agent is that agent's.
    is_its = usual == config.agent or "agent" not in config.model_fields_set
    path = config.agent_path if is_its else None
    made = make_agent(usual, cwd=cwd, path=path) if isinstance(usual, str) else usual
    if isinstance(made, RoutingAgent) or not (config.agents or config.fallback):
        return made
    return _Maker(config, cwd, usual if isinstance(usual, str) else made.name, made).routed()


class _Maker:
    """Makes each agent once, however often it is named."""

    def __init__(self, config: Config, cwd: Path, name: str, made: LlmAgent) -> None:
        self._config = config
        self._cwd = cwd
        self._name = name
        self._usual = Candidate(agent=made, name=name)
        self._candidates: dict[tuple[str, str | None, str | None], Candidate] = {
            (name, None, None): self._usual
        }
        self._agents: dict[tuple[str, str | None], LlmAgent] = {(name, None): made}

    def routed(self) -> RoutedAgent:
        """All roles with their agents."""
        rest = self._chain(self._config.fallback, "fallback")
        chains = {}
        for role, chosen in self._config.agents.items():
            place = f"agents.{role}"
            first = self._candidate(chosen.agent, chosen.model, chosen.path, place)
            own = rest
            if chosen.fallback is not None:
                own = self._chain(chosen.fallback, f"{place}.fallback")
            chains[role] = _each_once(first, own)
        return RoutedAgent(_each_once(self._usual, rest), chains)

    def _chain(self, chosen: Sequence[FallbackAgent], place: str) -> list[Candidate]:
        return [
            self._candidate(one.agent, one.model, one.path, f"{place}[{number}]")
            for number, one in enumerate(chosen)
        ]

    def _candidate(
        self, name: str | None, model: str | None, path: str | None, place: str
    ) -> Candidate:
        name = self._name if name is None else name
        key = (name, model, path)
        if key not in self._candidates:
            self._candidates[key] = Candidate(
                agent=self._agent(name, path, place),
                name=f"{name} ({model})" if model is not None else name,
                model=model,
                is_default=name == self._name,
            )
        return self._candidates[key]

    def _agent(self, name: str, path: str | None, place: str) -> LlmAgent:
        key = (name, path)
        if key not in self._agents:
            try:
                usual = self._config.agent_path if name == self._config.agent else None
                self._agents[key] = make_agent(name, cwd=self._cwd, path=path or usual)
            except ConfigError as error:
                message = f'{CONFIG_FILE}: "{place}": {error.message}'
                raise ConfigError(message, hint=error.hint) from error
        return self._agents[key]


def _each_once(first: Candidate, others: Sequence[Candidate]) -> tuple[Candidate, ...]:
    return tuple(dict.fromkeys((first, *others)))
