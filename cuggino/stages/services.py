"""The services that stages and loops work with, as one frozen value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from reactivex import Observable, empty, just, never

from cuggino.agents.base import LlmAgent
from cuggino.events import ControlEvent
from cuggino.folders import folder_changes
from cuggino.gate import NoWork, Work
from cuggino.operators.supervision import QuotaGate
from cuggino.prompts import Prompts
from cuggino.stages.command import Shell, shell_lines
from cuggino.stages.fingerprint import fingerprint_stage, trace_stage
from cuggino.stages.handover import work_left
from cuggino.stages.repository import (
    Commit,
    Commits,
    Repository,
    commits_since,
)
from cuggino.stages.snapshot import NoSnapshots, Snapshots
from cuggino.stages.waiting import Ci, NoCi
from cuggino.storage import ControlFolder, Workspace

Changes: TypeAlias = Callable[[Path], Observable[object]]
"""Emits an item whenever a folder has changed."""

Fingerprint: TypeAlias = Callable[..., Observable[str]]
"""Emits a short text for the content of a folder, like `fingerprint_stage`."""


class NoRepository:
    """A project without version control."""

    def head(self) -> Observable[str | None]:
        return just(None)

    def commit(self, message: str, *, exclude: tuple[Path, ...] = ()) -> Observable[Commit]:
        return empty()

    def push(self, remote: str, branch: str) -> Observable[Any]:
        return empty()


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The services of one project. All loops share one value, and each uses those it needs.

    Replace a service with `dataclasses.replace` or `Runtime.replace`.
    """

    agent: LlmAgent
    workspace: Workspace
    repository: Repository = field(default_factory=NoRepository)
    prompts: Prompts = field(default_factory=Prompts)
    snapshots: Snapshots = field(default_factory=NoSnapshots)
    """The store of the project's state before each agent."""
    shell: Shell = shell_lines
    gate: QuotaGate = field(default_factory=QuotaGate)
    """The gate where all loops wait for a usage limit to be lifted."""
    fingerprint: Fingerprint = fingerprint_stage
    trace: Fingerprint = trace_stage
    changes: Changes = folder_changes
    commits: Commits = commits_since
    control: Observable[ControlEvent] = field(default_factory=never)
    """A person's commands to a run at work; emitted on any thread."""
    control_folder: ControlFolder | None = None
    """The folder that holds commands until they have taken effect."""
    shows_plans: bool = False
    """True if runs also emit data that only screens need: plans, titles and positions of items."""
    drafts: bool = True
    """True if messages are shown while agents write them (`MessageDelta`). Otherwise most lines of
    an agent need no event."""
    save: Callable[[], Observable[object]] | None = None
    """Keeps the work elsewhere, before each session of an agent."""
    work: Work = field(default_factory=NoWork)
    """The files of the project, as the gate compares them."""
    work_left: Callable[[Path], Observable[str]] = work_left
    """Emits the uncommitted changes, for an agent that takes over."""

    ci: Ci = field(default_factory=NoCi)
    """The CI that agents wait for."""

    def own_files(self, cwd: Path) -> tuple[str, ...]:
        """Return the files of the agent's programs below a folder, relative to it."""
        folder, files = cwd.resolve(), (path.resolve() for path in self.agent.own_files)
        return tuple(
            path.relative_to(folder).as_posix() for path in files if folder in path.parents
        )

    def project_state(
        self, cwd: Path, *, exclude: tuple[Path, ...], plan: Path | None = None
    ) -> Observable[str]:
        """Emit the fingerprint of the project without the agent's own files."""
        return self.fingerprint(cwd, exclude=(*exclude, *self.agent.own_files), plan=plan)

    def project_trace(self, cwd: Path, *, exclude: tuple[Path, ...]) -> Observable[str]:
        """Emit the digest of everything outside the fingerprint, without the agent's own files."""
        return self.trace(cwd, exclude=(*exclude, *self.agent.own_files))
