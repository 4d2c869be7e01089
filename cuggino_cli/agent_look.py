"""A look at the agents that can be named: each in a process of its own, all at once, in time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from cuggino.agents import Capabilities, SandboxedAgent, capabilities_of, make_agent
from cuggino.agents.registry import AgentEntry, agent_entries
from cuggino.config import load_config
from cuggino.errors import AgentNotFound, AgentTooOld, ConfigError, CugginoError

ANSWER_SECONDS = 20.0
"""For all agents together to tell their versions."""

State = Literal["ready", "missing", "old", "broken"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What there is to say of one agent."""

    name: str
    origin: str = ""
    """`cuggino`, or the package that brings it; empty for an import path."""
    configured: bool = False
    """Whether it is an agent of this project."""
    state: State = "broken"
    """`missing` is an agent whose program is not there, `old` one that is to be updated."""
    version: str | None = None
    problem: str | None = None
    """Why it is not ready, in one sentence."""
    hint: str | None = None
    """What to do about that."""
    capabilities: Capabilities | None = None
    """None when the agent cannot even be made."""
    sandbox_unavailable: str = ""
    """Why its sandbox does not work on this machine."""

    def to_json(self) -> dict[str, Any]:
        """The look as one object; the capabilities are in it."""
        given = asdict(self)
        claimed = given.pop("capabilities") or {}
        names = Capabilities.__dataclass_fields__
        return given | {name: claimed.get(name) for name in names}


def look_at_all(folder: Path, *, seconds: float = ANSWER_SECONDS) -> list[Look]:
    """All agents, those of cuggino first, last those that only the project names.

    Whatever an agent's package does, it is one `Look`: its code runs in a process of its own, and
    is ended with all that it has started when `seconds` have passed.
    """
    configured = _configured(folder)
    entries = list(agent_entries())
    known = {entry.name for entry in entries}
    entries += [AgentEntry(name, "") for name in configured if name not in known]
    started = [_start(entry.name, folder, configured.get(entry.name)) for entry in entries]
    try:
        deadline = time.monotonic() + seconds
        said = [_answer(process, deadline - time.monotonic()) for process in started]
    finally:
        for process in started:
            _end(process)
    return [
        replace(_read(answer, entry.name), origin=entry.origin, configured=entry.name in configured)
        for entry, answer in zip(entries, said, strict=True)
    ]


def look_at(name: str, *, folder: Path, path: str | None) -> Look:
    """One agent, looked at in this process: it may take its time, print, or end it."""
    try:
        agent = make_agent(name, cwd=folder, path=path)
        look = Look(name=name, capabilities=capabilities_of(agent))
    except CugginoError as error:
        return Look(name=name, problem=error.message, hint=error.hint)
    except Exception as error:  # it is the code of somebody else
        return Look(name=name, problem=f"it cannot say what it can do: {_words(error)}")
    try:
        look = replace(look, state="ready", version=agent.check())
    except AgentNotFound as error:
        state: State = "old" if isinstance(error, AgentTooOld) else "missing"
        look = replace(look, state=state, problem=error.message, hint=error.hint)
    except CugginoError as error:
        look = replace(look, problem=error.message, hint=error.hint)
    except Exception as error:  # it is the code of somebody else
        look = replace(look, problem=f"its check failed: {_words(error)}")
    if isinstance(agent, SandboxedAgent):
        with suppress(Exception):
            look = replace(look, sandbox_unavailable=agent.sandbox_unavailable())
    return look


def answer_on_stdout(name: str, *, folder: Path, path: str | None) -> int:
    """Look at one agent, and print that as JSON; what its code prints goes nowhere."""
    out = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    look = look_at(name, folder=folder, path=path)
    with os.fdopen(out, "w", encoding="utf-8") as stream:
        stream.write(json.dumps(asdict(look)) + "\n")
    return 0


def _configured(folder: Path) -> dict[str, str | None]:
    """The agents of the project, each with its program; a broken configuration names none."""
    try:
        config = load_config(folder)
    except ConfigError:
        return {}
    found: dict[str, str | None] = {config.agent: config.agent_path}
    roles = config.agents.values()
    others = [other for role in roles for other in role.fallback or ()]
    for choice in (*roles, *others, *config.fallback):
        if choice.agent is not None:
            found.setdefault(choice.agent, choice.path)
    return found


def _start(name: str, folder: Path, path: str | None) -> subprocess.Popen[bytes]:
    # Without the present folder among the places for modules: it is the project's.
    words = [sys.executable, "-P", "-m", "cuggino_cli", "agents", "--look", name]
    return subprocess.Popen(
        [*words, *(["--path", path] if path else [])],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _answer(process: subprocess.Popen[bytes], seconds: float) -> bytes | None:
    """What it printed; None when it did not end in time."""
    try:
        # What has ended has answered in time, however late it is asked.
        left = max(seconds, 0.0) if process.poll() is None else 1.0
        return process.communicate(timeout=left)[0]
    except subprocess.TimeoutExpired:
        return None


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _read(answer: bytes | None, name: str) -> Look:
    if answer is None:
        return Look(name=name, problem="it did not tell its version in time")
    try:
        said: dict[str, Any] = json.loads(answer)
        claimed = said.pop("capabilities")
        return Look(**said, capabilities=Capabilities(**claimed) if claimed else None)
    except (ValueError, TypeError, KeyError, AttributeError):
        return Look(name=name, problem="its code ended the process that looked at it")


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
