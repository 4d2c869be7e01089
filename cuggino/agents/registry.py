"""Agents by name: those that come with cuggino, those that are installed beside it, import paths.

A package adds agents with entry points of the group `cuggino.agents`: the name of each is that of
the agent, and its object the class, or a function, that makes it. That is called with those of the
keywords `path` (the program, if it is not the usual one), `cwd` (the project's folder) and
`argument` (what stood behind a colon: `name:argument`) that it takes and that are given. An import
path (`package.module:Class`) names the same object without an entry point.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from cuggino.agents.protocol import LlmAgent
from cuggino.errors import ConfigError

GROUP = "cuggino.agents"
"""The group of entry points that name agents."""

BUILT_IN: Mapping[str, str] = MappingProxyType(
    {
        "claude": "cuggino.agents.claude:ClaudeAgent",
        "claude-sdk": "cuggino.agents.claude_sdk:ClaudeSdkAgent",
        "codex": "cuggino.agents.codex:CodexAgent",
        "copilot": "cuggino.agents.copilot:CopilotAgent",
        "gemini": "cuggino.agents.gemini:GeminiAgent",
        "opencode": "cuggino.agents.opencode:OpenCodeAgent",
    }
)
"""The agents of cuggino that are programs, each with its class."""

_WITH_FILE = ("scripted:FILE", "replay:FILE")

_IMPORT_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*", re.ASCII)


class AgentEntry(NamedTuple):
    """An agent that can be named."""

    name: str
    origin: str
    """`cuggino`, or the package that brings it."""


def agent_names() -> tuple[str, ...]:
    """What can be given as an agent's name, besides import paths; those of cuggino first."""
    return (*BUILT_IN, *_WITH_FILE, *sorted(_installed().keys() - BUILT_IN.keys()))


def agent_entries() -> tuple[AgentEntry, ...]:
    """The agents that are programs or packages, those of cuggino first."""
    more = _installed()
    return (
        *(AgentEntry(name, "cuggino") for name in BUILT_IN),
        *(AgentEntry(n, _origin(more[n])) for n in sorted(more.keys() - BUILT_IN.keys())),
    )


def make_agent(name: str, *, cwd: Path, path: str | None = None) -> LlmAgent:
    """The agent of that name; `path` is its program, if it is not the usual one.

    `scripted:FILE` plays a scenario, `replay:FILE` a recording; the file is relative to `cwd`, and
    so is a `path` that is not a bare name. Import paths are looked up as Python does, which is not
    in `cwd`.

    Raises:
        ConfigError: there is no such agent, or it cannot be made: its scenario cannot be used, its
            module not be imported, what it names is no agent.
    """
    kind, _, argument = name.partition(":")
    if kind == "scripted" and argument:
        from cuggino.agents.scripted import ScriptedAgent

        return ScriptedAgent(cwd / argument)
    if kind == "replay" and argument:
        from cuggino.agents.cassettes import replay_of

        return replay_of(cwd / argument)
    program = str(cwd / path) if path and os.sep in path else path
    given = {"path": program or None, "cwd": cwd, "argument": argument or None}
    if kind in BUILT_IN and not argument:
        return _made(_imported(name, BUILT_IN[kind]), given, name)
    if kind not in BUILT_IN and (entry := _installed().get(kind)) is not None:
        return _made(_loaded(entry), given, name)
    if _IMPORT_PATH.fullmatch(name):
        return _made(_imported(name, name), {**given, "argument": None}, name)
    raise ConfigError(
        f'unknown agent "{name}"',
        hint="available agents: " + ", ".join((*agent_names(), "package.module:Class")),
    )


def _installed() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _origin(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.value


def _loaded(entry: EntryPoint) -> Any:
    try:
        return entry.load()
    except Exception as error:  # it is the code of somebody else
        raise ConfigError(
            f'the agent "{entry.name}" of {_origin(entry)} cannot be loaded: {_words(error)}',
            hint=f"install {_origin(entry)} anew, or choose another agent",
        ) from error


def _imported(name: str, place: str) -> Any:
    module, _, attribute = place.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except Exception as error:  # it may be the code of somebody else
        hint = "available agents: " + ", ".join((*agent_names(), "package.module:Class"))
        raise ConfigError(
            f'the agent "{name}" cannot be imported: {_words(error)}', hint=hint
        ) from error
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
    if not isinstance(agent, LlmAgent):
        raise ConfigError(
            f'"{name}" makes a {type(agent).__name__}, which is no agent',
            hint="it needs name, can_resume, check, spawn and interactive (cuggino.LlmAgent)",
        )
    return agent


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
