"""Judging the tool calls of a recorded run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_never

from cuggino.config import Config, LoopSettings, configured_policy
from cuggino.config.agent_file import DELIVER_ROLES
from cuggino.events import RunStarted, ToolCall
from cuggino.security.policy import Level, Policy
from cuggino.security.roles import ROLES, Role
from cuggino.security.shell.shfmt import find_shfmt
from cuggino.security.tools import judge
from cuggino.security.verdict import Verdict, denied
from cuggino.storage import Session, Workspace
from cuggino.storage.journal import Entry, iter_entries
from cuggino_cli.guard_audit_settings import delivery_settings
from cuggino_cli.output.theme import Fragment
from cuggino_cli.output.tools import tool_line
from cuggino_cli.output.verdicts import on_lines, part_fragments, verdict_json


@dataclass(frozen=True, slots=True)
class DeniedCall:
    """A call of the run that would be denied."""

    entry: Entry
    role: str
    call: ToolCall
    verdict: Verdict

    def as_json(self) -> dict[str, Any]:
        """The call with its place in the journal, and the verdict."""
        return {
            "seq": self.entry.seq,
            "at": self.entry.at.isoformat(),
            "stage": self.entry.stage,
            "role": self.role,
            "tool": self.call.name,
            "input": self.call.input,
            **verdict_json(self.verdict),
        }

    def fragments(self) -> list[Fragment]:
        """The call, and below it each part that is denied."""
        at = f"{self.entry.at.astimezone():%m-%d %H:%M:%S}"
        head = [
            Fragment("prose", f"{at} {self.entry.stage or self.role} "),
            Fragment("tool", tool_line(self.call.name, self.call.input)),
        ]
        parts = [part for part in self.verdict.parts if not part.is_allowed]
        return on_lines([head, *(part_fragments(part.text, part.reason) for part in parts)])


class Audit:
    """One pass over a journal; `calls` and `denials` count what was passed so far."""

    def __init__(self, root: Path, config: Config, journal: Path, *, level: Level | None) -> None:
        self.calls = 0
        self.denials = 0
        self._root = root
        self._settings: LoopSettings = config
        self._journal = journal
        self._level = level
        self._default: Role = "implementing"
        self._session = Session(journal.stem, Workspace(root).wip)
        self._policies: dict[Role, Policy] = {}

    def denied(self) -> Iterator[DeniedCall]:
        """The calls that would be denied, in their order; call it once.

        Raises:
            StorageError: the journal cannot be read.
            ConfigError: the settings of a deliverables run cannot be used.
        """
        shfmt = find_shfmt()
        for entry in iter_entries(self._journal, only=("RunStarted", "ToolCall")):
            match entry.event:
                case RunStarted() as started:
                    self._begin(started)
                case ToolCall() as call:
                    self.calls += 1
                    role = self._role(entry.stage)
                    verdict = self._judge(call, role, shfmt)
                    if not verdict.is_allowed:
                        self.denials += 1
                        yield DeniedCall(entry, role, call, verdict)
                case _:
                    pass

    def summary(self) -> list[Fragment]:
        """How many there were, and how many would be denied."""
        calls = f"{self.calls} tool call{'s' * (self.calls != 1)}"
        return [Fragment("plain", f"{self.denials} of {calls} would be denied.")]

    def _begin(self, started: RunStarted) -> None:
        level: Level = "full" if started.options.get("guard") == "full" else "roles"
        match started.kind:
            case "watch":
                # Its agent itself is the auditor; the items have journals of their own.
                self._default = "audit"
            case "deliver":
                self._default = "deliver"
                self._settings = delivery_settings(started, self._root)
                level = "full"
            case "run":
                self._default = "implementing"
            case "loop":
                self._default = "implementing"
                if started.options.get("allow_all") is False:
                    level = "full"
            case _ as never:
                assert_never(never)
        self._level = self._level or level

    def _role(self, stage: str | None) -> Role:
        name = (stage or "").partition("#")[0]
        if self._default == "deliver":
            return DELIVER_ROLES.get(name, "deliver")
        if name.startswith("verify-"):  # the verifying agents of the plan/build loop
            return "audit"
        return next((role for role in ROLES if role == name), self._default)

    def _judge(self, call: ToolCall, role: Role, shfmt: str) -> Verdict:
        if role not in self._policies:
            self._policies[role] = configured_policy(
                self._settings,
                role,
                project=self._root,
                level=self._level or "roles",
                plan=self._session.plan_file,
                review=self._session.review_file,
            )
        if not isinstance(call.input, dict):
            return denied(call.name, "its input is no object")
        return judge(self._policies[role], call.name, call.input, str(self._root), shfmt=shfmt)
