"""An inspection of the agents: version, capabilities, and why one cannot work.

Each agent is inspected in a separate process, all at the same time, with a deadline.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from reactivex import Observable, empty, operators as ops, throw, timer

from cuggino.agents import AgentEntry, Capabilities, agent_entries, make_agent
from cuggino.config import Config, load_config
from cuggino.doctor.project_code import NOT_STARTED, why_not_started
from cuggino.edges import run
from cuggino.errors import AgentNotFound, AgentTooOld, ConfigError, CugginoError, ProcessFailed
from cuggino.operators import interrupt_when
from cuggino.operators.merge_now import merge_now
from cuggino.processes import process_output

ANSWER_SECONDS = 20.0
"""Time limit for all agents together."""

AgentState = Literal["ready", "missing", "old", "broken", "unchecked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReport:
    """The state of one agent on this machine."""

    name: str
    origin: str = ""
    """`cuggino`, or the package that provides it; empty for an import path."""
    configured: bool = False
    """True if the project uses it."""
    state: AgentState = "broken"
    """`missing`: its program is not installed; `old`: the program must be updated; `unchecked`: it
    is project code, which is not run for a check."""
    version: str | None = None
    problem: str | None = None
    """The reason why it is not ready."""
    hint: str | None = None
    """Advice on solving the problem."""
    capabilities: Capabilities | None = None
    """None if the agent could not be created."""
    sandbox_unavailable: str = ""
    """The reason why its sandbox does not work on this machine."""

    def to_json(self) -> dict[str, Any]:
        """Return the report as one flat object, capabilities included."""
        fields = asdict(self)
        claimed = fields.pop("capabilities") or {}
        names = Capabilities.__dataclass_fields__
        return fields | {name: claimed.get(name) for name in names}


def inspect_agents(
    project: str | os.PathLike[str] = ".",
    *,
    seconds: float = ANSWER_SECONDS,
    trusted: bool = False,
) -> list[AgentReport]:
    """Inspect all agents: cuggino's first, then those of packages, then import paths.

    Every agent gives one report, even if its code hangs or crashes: the code runs in a separate
    process, which is killed with everything it started after `seconds`. Nothing that lies in the
    project is started, and other import paths only if the user has accepted its commands
    (`trusted`, see `cuggino.trust`).
    """
    folder = Path(project).resolve()
    config = _config(folder)
    configured = _configured(config)
    entries = list(agent_entries())
    known = {entry.name for entry in entries}
    named = dict.fromkeys(
        (*configured, *(f"acp:{name}" for name in (config.acp if config else ())))
    )
    entries += [AgentEntry(name, "") for name in named if name not in known]
    reports = _not_started(configured, folder, trusted=trusted)
    asked = [
        _answer(_question(name, configured.get(name)), folder, seconds=seconds).pipe(
            ops.map(partial(_read, name=name))
        )
        for name in (entry.name for entry in entries)
        if name not in reports
    ]
    run(merge_now(*asked), lambda report: reports.update({report.name: report}))
    return [
        replace(reports[entry.name], origin=entry.origin, configured=entry.name in configured)
        for entry in entries
    ]


def inspect_agent(name: str, *, folder: Path, path: str | None) -> AgentReport:
    """Inspect one agent in this process: its code may block, print, or end the process."""
    try:
        agent = make_agent(name, cwd=folder, path=path)
        report = AgentReport(name=name, capabilities=agent.capabilities)
    except CugginoError as error:
        return AgentReport(name=name, problem=error.message, hint=error.hint)
    except Exception as error:  # third-party code
        return AgentReport(name=name, problem=f"cannot read its capabilities: {_words(error)}")
    try:
        report = replace(report, state="ready", version=agent.check())
    except AgentNotFound as error:
        state: AgentState = "old" if isinstance(error, AgentTooOld) else "missing"
        report = replace(report, state=state, problem=error.message, hint=error.hint)
    except CugginoError as error:
        report = replace(report, problem=error.message, hint=error.hint)
    except Exception as error:  # third-party code
        report = replace(report, problem=f"its check failed: {_words(error)}")
    if agent.capabilities.sandbox:
        with suppress(Exception):
            report = replace(report, sandbox_unavailable=agent.sandbox_unavailable())
    return report


def _config(folder: Path) -> Config | None:
    """Return the configuration; None for a broken one."""
    try:
        return load_config(folder)
    except ConfigError:
        return None


def _configured(config: Config | None) -> dict[str, str | None]:
    """Map the project's agents to their programs."""
    if config is None:
        return {}
    found: dict[str, str | None] = {config.agent: config.agent_path}
    roles = config.agents.values()
    others = [other for role in roles for other in role.fallback or ()]
    for choice in (*roles, *others, *config.fallback):
        if choice.agent is not None:
            found.setdefault(choice.agent, choice.path)
    return found


def _not_started(
    configured: Mapping[str, str | None], folder: Path, *, trusted: bool
) -> dict[str, AgentReport]:
    """Return the reports of agents that are code of the project."""
    reports: dict[str, AgentReport] = {}
    for name, path in configured.items():
        why = why_not_started(name, folder=folder, path=path, env=os.environ, trusted=trusted)
        if why:
            reports[name] = AgentReport(
                name=name, state="unchecked", problem=f"not started: {why}", hint=NOT_STARTED
            )
    return reports


def _question(name: str, path: str | None) -> list[str]:
    # -P: the current folder is the project's and must not provide modules.
    words = [sys.executable, "-P", "-m", "cuggino.doctor.agent_process", name]
    return [*words, *([path] if path else [])]


def _answer(argv: Sequence[str], folder: Path, *, seconds: float) -> Observable[bytes | None]:
    """Emit the output of a process; None if it has not exited in time and was killed."""

    def failed(error: Exception, _source: object) -> Observable[bytes]:
        return empty() if isinstance(error, ProcessFailed) else throw(error)

    output: Observable[Any] = process_output(argv, cwd=folder, env=os.environ, grace=0.0)
    return output.pipe(ops.catch(failed), interrupt_when(timer(seconds), None))


def _read(answer: bytes | None, *, name: str) -> AgentReport:
    if answer is None:
        return AgentReport(name=name, problem="it did not report its version in time")
    try:
        fields: dict[str, Any] = json.loads(answer)
        claimed = fields.pop("capabilities")
        return AgentReport(**fields, capabilities=Capabilities(**claimed) if claimed else None)
    except (ValueError, TypeError, KeyError, AttributeError):
        return AgentReport(name=name, problem="its code ended the process that inspected it")


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
