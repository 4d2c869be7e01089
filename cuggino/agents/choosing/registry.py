"""Agents by name: built-in ones, those of installed packages, and import paths.

A package adds agents with entry points of the group `cuggino.agents`. The name of an entry point is
that of the agent; its object is a class or function that returns the agent. It is called with those
of the keywords `path` (the program, if not the default), `cwd` (the project's folder) and
`argument` (the text after a colon: `name:argument`) that it accepts and that are set. An import
path (`package.module:Class`) names such an object without an entry point.

Agents are imported only if they are named, before the first one starts.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from cuggino.agents.base.agent import AgentLike, LlmAgent, adopt
from cuggino.agents.choosing.routing import Candidate, RoutedAgent
from cuggino.agents.profiles import PROFILES, profile_of
from cuggino.config import CONFIG_FILE, AcpProgram, Config, FallbackAgent
from cuggino.errors import ConfigError

GROUP = "cuggino.agents"
"""Group of the entry points."""

BUILT_IN: Mapping[str, str] = MappingProxyType(
    {
        "claude": "cuggino.agents.claude:ClaudeAgent",
        "codex": "cuggino.agents.codex:CodexAgent",
        "copilot": "cuggino.agents.copilot:CopilotAgent",
        "gemini": "cuggino.agents.gemini:GeminiAgent",
        "opencode": "cuggino.agents.opencode:OpenCodeAgent",
    }
)
"""Built-in agents that are programs, by import path."""

_REMOVED = MappingProxyType(
    {
        "claude-sdk": "claude",
        "cuggino.agents.claude_sdk:ClaudeSdkAgent": "claude",
    }
)
"""Removed agents, each with the one that drives the same program."""

_WITH_ARGUMENT: Mapping[str, str] = MappingProxyType(
    {
        "acp": "cuggino.agents.acp:AcpAgent",
        "scripted": "cuggino.agents.scripted:ScriptedAgent",
        "replay": "cuggino.agents.cassettes:replay_of",
    }
)
"""Built-in agents whose names end with a colon and an argument, by import path."""
_WITH_FILE = ("acp:NAME", "scripted:FILE", "replay:FILE")

_IMPORT_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*", re.ASCII)


class AgentEntry(NamedTuple):
    """An agent that can be chosen by name."""

    name: str
    origin: str
    """`cuggino`, or the package that provides it."""


def agent_names() -> tuple[str, ...]:
    """Return all names of agents besides import paths, built-in ones first."""
    return (*BUILT_IN, *_WITH_FILE, *sorted(_installed().keys() - BUILT_IN.keys()))


def agent_entries() -> tuple[AgentEntry, ...]:
    """Return the agents that are programs or packages, built-in ones first.

    Of the programs of the Agent Client Protocol, only installed ones are listed.
    """
    more = _installed()
    spoken = [one for one in PROFILES.values() if shutil.which(one.command[0]) is not None]
    return (
        *(AgentEntry(name, "cuggino") for name in BUILT_IN),
        *(AgentEntry(f"acp:{one.name}", "cuggino") for one in spoken),
        *(AgentEntry(n, _origin(more[n])) for n in sorted(more.keys() - BUILT_IN.keys())),
    )


def make_agent(
    name: str,
    *,
    cwd: Path,
    path: str | None = None,
    acp: Mapping[str, AcpProgram] | None = None,
) -> LlmAgent:
    """Return the agent of that name; `path` is its program, if not the default.

    `acp:NAME` is a program of `acp`, by default that of the configuration in `cwd`, or one that
    comes with cuggino. `scripted:FILE` plays a scenario, `replay:FILE` a recording. The file is
    relative to `cwd`, and so is a `path` that is not a bare name. Import paths are resolved by
    Python, and not in `cwd`.

    Raises:
        ConfigError: the agent is unknown, was removed, or cannot be created, for example because
            its scenario or module is broken.
    """
    kind, _, argument = name.partition(":")
    program = str(cwd / path) if path and os.sep in path else path
    if kind in _WITH_ARGUMENT and argument:
        make = _object(_WITH_ARGUMENT[kind])
        if kind == "acp":
            made: LlmAgent = make(profile_of(argument, acp, cwd=cwd), path=program or None)
        else:
            made = make(cwd / argument)
        return made
    given = {"path": program or None, "cwd": cwd, "argument": argument or None}
    if kind in BUILT_IN and not argument:
        return _made(built_in(kind), given, name)
    if kind not in BUILT_IN and (entry := _installed().get(kind)) is not None:
        return _made(_loaded(entry), given, name)
    if name in _REMOVED:
        raise ConfigError(
            f'the agent "{name}" was removed: use `{_REMOVED[name]}`, the same program'
        )
    if _IMPORT_PATH.fullmatch(name):
        return _made(_imported(name, name), {**given, "argument": None}, name)
    raise ConfigError(
        f'unknown agent "{name}"',
        hint="available agents: " + ", ".join((*agent_names(), "package.module:Class")),
    )


def is_import_path(name: str) -> bool:
    """Return whether `make_agent` would import this name as `package.module:Class`."""
    kind = name.partition(":")[0]
    return (
        kind not in _WITH_ARGUMENT
        and kind not in BUILT_IN
        and kind not in _installed()
        and _IMPORT_PATH.fullmatch(name) is not None
    )


def built_in(name: str) -> type[LlmAgent]:
    """Import and return the class of a built-in agent that is a program."""
    found: type[LlmAgent] = _object(BUILT_IN[name])
    return found


def _installed() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _origin(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.value


def _loaded(entry: EntryPoint) -> Any:
    try:
        return entry.load()
    except Exception as error:  # foreign code
        raise ConfigError(
            f'the agent "{entry.name}" of {_origin(entry)} cannot be loaded: {_words(error)}',
            hint=f"reinstall {_origin(entry)}, or choose another agent",
        ) from error


def _imported(name: str, place: str) -> Any:
    try:
        return _object(place)
    except Exception as error:  # possibly foreign code
        hint = "available agents: " + ", ".join((*agent_names(), "package.module:Class"))
        raise ConfigError(
            f'the agent "{name}" cannot be imported: {_words(error)}', hint=hint
        ) from error


def _object(place: str) -> Any:
    """Import and return an object by its import path, `package.module:Class`."""
    module, _, attribute = place.partition(":")
    found: Any = importlib.import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    return found


def _made(factory: Callable[..., Any], given: Mapping[str, Any], name: str) -> LlmAgent:
    try:
        wanted = inspect.signature(factory).parameters.values()
        takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in wanted)
        known = {parameter.name for parameter in wanted}
        words = {
            key: value
            for key, value in given.items()
            if value is not None and (takes_all or key in known)
        }
        agent = factory(**words)
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f'the agent "{name}" cannot be made: {_words(error)}') from error
    if not (isinstance(getattr(agent, "name", None), str) and callable(getattr(agent, "spawn", 0))):
        raise ConfigError(
            f'"{name}" makes a {type(agent).__name__}, which is not an agent',
            hint="an agent needs `name` and `spawn` (see cuggino.LlmAgent)",
        )
    return adopt(agent)


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def configured_agent(
    config: Config, *, cwd: Path, agent: str | AgentLike | None = None
) -> LlmAgent:
    """Return the agent of this project: a `RoutedAgent` if there is more than one.

    `agent`, or the configured one, is the default: it works in the roles for which `agents` names
    no other, with the model of the session's options. A router is returned unchanged.

    Raises:
        ConfigError: an agent cannot be created; the message names the setting.
    """
    usual = agent if agent is not None else config.agent
    # A path next to the name of an agent belongs to that agent.
    is_its = usual == config.agent or "agent" not in config.model_fields_set
    path = config.agent_path if is_its else None
    made = (
        make_agent(usual, cwd=cwd, path=path, acp=config.acp)
        if isinstance(usual, str)
        else adopt(usual)
    )
    if made.is_router or not (config.agents or config.fallback):
        return made
    return _Maker(config, cwd, usual if isinstance(usual, str) else made.name, made).routed()


class _Maker:
    """Creates each agent once, however often it is named."""

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
        """Return the agent for all roles."""
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
                self._agents[key] = make_agent(
                    name, cwd=self._cwd, path=path or usual, acp=self._config.acp
                )
            except ConfigError as error:
                message = f'{CONFIG_FILE}: "{place}": {error.message}'
                raise ConfigError(message, hint=error.hint) from error
        return self._agents[key]


def _each_once(first: Candidate, others: Sequence[Candidate]) -> tuple[Candidate, ...]:
    return tuple(dict.fromkeys((first, *others)))
