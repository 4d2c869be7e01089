"""An audit of the tool calls of a recorded run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import assert_never

import reactivex
from reactivex import Observable

from cuggino.config import (
    AgentSettings,
    Config,
    GuardSettings,
    configured_policy,
    deliver_policy,
    read_agent_file,
)
from cuggino.edited_files import InvalidFile, validated
from cuggino.errors import ConfigError
from cuggino.events import RunStarted, SandboxChosen, ToolCall
from cuggino.guard import (
    PERMISSIONS,
    Level,
    PermissionSet,
    Policy,
    Verdict,
    denied,
)
from cuggino.guard_audit.check import judge_call
from cuggino.storage import Session, Workspace
from cuggino.storage.journal import iter_entries


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCall:
    """A tool call of the run with the guard's verdict on it."""

    seq: int
    """Its number in the journal."""
    at: datetime
    stage: str | None
    role: PermissionSet
    """The permissions of its session."""
    call: ToolCall
    verdict: Verdict


def audit_run(
    journal: Path,
    *,
    project: str | os.PathLike[str],
    config: Config,
    level: Level | None = None,
) -> Observable[JudgedCall]:
    """Emit every tool call of a recorded run with the verdict of the current configuration; cold.

    A call is judged by the policy of the role that made it, and as made in the project's folder:
    where the agent had changed to is not recorded. At level `roles` the paths of writes are judged
    only if no sandbox confined the role. A run of the deliver loop is judged at level
    `full` by its own recorded settings and the current `.autonoe/agent.json`.

    Args:
        journal: the journal of the run.
        project: the folder of the project.
        config: its current configuration.
        level: default the level of the run.

    Errors: `StorageError` if the journal cannot be read, `ConfigError` if the settings of a run of
    the deliver loop are unusable.
    """

    def calls(_scheduler: object) -> Observable[JudgedCall]:
        return reactivex.from_iterable(_Audit(journal, Path(project), config, level).calls())

    return reactivex.defer(calls)


class _Audit:
    """One pass over a journal."""

    def __init__(self, journal: Path, root: Path, config: Config, level: Level | None) -> None:
        self._root = root
        self._settings: GuardSettings = config
        self._agent: AgentSettings | None = None
        self._journal = journal
        self._level = level
        self._default: PermissionSet = "implementing"
        self._session = Session(journal.stem, Workspace(root).wip)
        self._policies: dict[PermissionSet, Policy] = {}
        self._apart: tuple[Path, ...] = ()
        self._confined: frozenset[str] = frozenset()

    def calls(self) -> Iterator[JudgedCall]:
        for entry in iter_entries(self._journal, only=("RunStarted", "SandboxChosen", "ToolCall")):
            match entry.event:
                case RunStarted() as started:
                    self._begin(started)
                case SandboxChosen() as chosen:
                    self._confined = frozenset(chosen.held)
                case ToolCall() as call:
                    role = self._role(entry.stage)
                    confined = (entry.stage or "").partition("#")[0] in self._confined
                    yield JudgedCall(
                        seq=entry.seq,
                        at=entry.at,
                        stage=entry.stage,
                        role=role,
                        call=call,
                        verdict=self._judge(call, role, confined),
                    )
                case _:
                    pass

    def _begin(self, started: RunStarted) -> None:
        level: Level = "full" if started.options.get("guard") == "full" else "roles"
        match started.kind:
            case "watch":
                # The only agent of the watch itself is the auditor; items have their own journals.
                self._default = "audit"
            case "deliver":
                self._default = "deliver"
                self._settings = deliver_settings(started)
                self._agent = read_agent_file(self._root).settings
                level = "full"
            case "run":
                self._default = "implementing"
                self._enter_slot(started)
            case "loop":
                self._default = "implementing"
                if started.options.get("allow_all") is False:
                    level = "full"
            case _ as never:
                assert_never(never)
        self._level = self._level or level

    def _enter_slot(self, started: RunStarted) -> None:
        """Judge the calls as made in the slot where the run worked, if it was one."""
        match started.options:
            case {"slot": int(slot), "apart": [str(slots), str(repository)]}:
                within = self._root.resolve()
                if within.is_relative_to(repository):
                    self._root = Path(slots, f"slot-{slot}") / within.relative_to(repository)
                    self._session = Session(self._journal.stem, Workspace(self._root).wip)
                    self._apart = (Path(slots), Path(repository))
            case _:
                pass

    def _role(self, stage: str | None) -> PermissionSet:
        name = (stage or "").partition("#")[0]
        if name.startswith("verify-"):  # verifiers of the plan/build loop
            return "audit"
        return PERMISSIONS.get(name, self._default)

    def _judge(self, call: ToolCall, role: PermissionSet, confined: bool) -> Verdict:
        if role not in self._policies:
            self._policies[role] = self._policy(role, self._level or "roles")
        if not isinstance(call.input, dict):
            return denied(call.name, "its input is no object")
        policy = self._policies[role]._replace(confined=confined)
        return judge_call(policy, call.name, call.input, str(self._root))

    def _policy(self, role: PermissionSet, level: Level) -> Policy:
        if self._agent is not None:
            settings = self._settings.model_copy(update={"guard": level})
            policy = deliver_policy(settings, self._agent, role, project=self._root)
            assert policy is not None
            return policy._replace(level=level)
        return configured_policy(
            self._settings,
            role,
            project=self._root,
            level=level,
            plan=self._session.plan_file,
            review=self._session.review_file,
            apart=self._apart,
        )


def deliver_settings(started: RunStarted) -> GuardSettings:
    """Return the settings recorded with a run of the deliver loop.

    Raises:
        ConfigError: the recorded options do not fit this version.
    """
    known = GuardSettings.model_fields
    try:
        return validated(
            GuardSettings,
            {name: value for name, value in started.options.items() if name in known},
        )
    except InvalidFile as error:
        raise ConfigError(
            f"the options of run {started.run_id} cannot be used by this version: {error}"
        ) from error
