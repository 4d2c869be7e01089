"""A coding loop with scripted agents, commands, commits and time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reactivex import Observable, defer, empty, just, throw

from cuggino import events as ev
from cuggino.agents.base import Role
from cuggino.errors import ProcessFailed
from cuggino.gate import Shell, Standing, State, Work
from cuggino.loops import LoopRunOptions, LoopService, Services
from cuggino.operators.supervision import QuotaGate
from cuggino.prompts import Prompts
from cuggino.stages import Commit
from cuggino.storage import Workspace
from cuggino.testing import AgentRun, InMemoryAgent, Marbles, Seen

PLAN = "# Plan\n\n## Task 1\n"


def says(tag: str, content: str = "") -> ev.AgentMessage:
    return ev.AgentMessage(text=f"<{tag}>{content}</{tag}>")


def marbles(**events: Any) -> Marbles:
    """Small letters are what agents say, capitals and digits what the loop makes of it."""
    return Marbles(
        **{
            "a": ev.AgentMessage(text="working"),
            "s": ev.SessionEnded(outcome="completed", cost_usd=0.5),
            "$": ev.StageCost(phase="reviewing", cost_usd=0.5, total_cost=0.5),
            "c": says("PLAN_COMPLETE", "planned"),
            "g": says("PROGRESS", "one"),
            "d": says("DONE", "all"),
            "w": says("NO_MORE_WORK", "nothing"),
            "n": says("NOTE", "mind"),
            "y": says("APPROVED", "yes"),
            "r": says("REQUEST_CHANGES", "redo"),
            "i": says("SPEC_ISSUE", "unclear"),
            "I": ev.IterationStart(iteration=1, max_iterations=10),
            "P": ev.PlanningStart(iteration=1),
            "C": ev.PlanComplete(content="planned"),
            "M": ev.ImplementingStart(iteration=1),
            "N": ev.Note(content="mind"),
            "G": ev.Progress(content="one"),
            "D": ev.Done(content="all"),
            "W": ev.NoMoreWork(content="nothing"),
            "V": ev.ReviewingStart(iteration=1),
            "Y": ev.Approved(content="yes"),
            "R": ev.RequestChanges(content="redo"),
            "T": ev.TaskLimitReached(iteration=1, max_tasks=2),
            "K": ev.CommitPerformed(iteration=1, commit_hash="abc", message="one"),
            "F": ev.CommitFailed(iteration=1, message="hook"),
            "B": ev.ApprovalBlocked(iteration=1, exit_code=1),
            "L": ev.LoopApproved(iteration=1, checked=False),
            "2": ev.IterationStart(iteration=2, max_iterations=10),
            "Q": ev.PlanningStart(iteration=2),
            "X": ev.LoopMaxIterations(iteration=1, max_iterations=1),
            **events,
        }
    )


class FakeWork(Work):
    """The files of a project as a test wants them."""

    def __init__(self) -> None:
        self.changes: list[str] = []
        """Files that differ from the start."""
        self.copies: list[Observable[bytes]] = []
        """What the check does in each copy of the project."""
        self.put_back: list[list[str]] = []
        """The files of the start in each of these copies."""
        self.standings: list[Standing] = []
        """What the commit lacks, each time that this is asked; the last one for ever."""
        self.staged: list[str] = []

    def state(self, commit: str | None = None) -> Observable[State | None]:
        return just({"tree": "t0", "head": "h0", "branch": None, "ignored": {}, "listed": []})

    def changed(self, start: State) -> Observable[State]:
        return just({"changed": list(self.changes), "had_tests": True, "tree": "t1"})

    def copy(
        self, start: State, paths: Sequence[str], *, env: Mapping[str, str]
    ) -> Observable[Shell | None]:
        if not self.copies:
            return just(None)
        self.put_back.append(list(paths))
        stream = self.copies.pop(0)
        return just(lambda _command, _cwd: stream)

    def standing(
        self, start: State, *, checked: str | None, exclude: Sequence[str]
    ) -> Observable[Standing]:
        more = len(self.standings) > 1
        found = self.standings.pop(0) if more else next(iter(self.standings), Standing())
        return just(found)

    def stage(self, paths: Sequence[str]) -> Observable[Any]:
        self.staged += paths
        return empty()

    def as_commit(self) -> Observable[str | None]:
        return just(None)

    def return_to(self, branch: str) -> Observable[bool]:
        return just(False)


class MarbleRepository:
    """Each commit and push plays its next stream; `messages` has what was to be committed."""

    def __init__(self, *commits: Observable[Any], pushes: Iterable[Observable[Any]] = ()) -> None:
        self._commits = iter(commits)
        self._pushes = iter(pushes)
        self.base: str | None = "base"
        self.messages: list[str] = []
        self.excluded: list[tuple[Path, ...]] = []
        self.pushed_to: list[tuple[str, str]] = []

    def head(self) -> Observable[str | None]:
        return just(self.base)

    def commit(self, message: str, *, exclude: tuple[Path, ...] = ()) -> Observable[Commit]:
        self.messages.append(message)
        self.excluded.append(exclude)
        return next(self._commits)

    def push(self, remote: str, branch: str) -> Observable[Any]:
        self.pushed_to.append((remote, branch))
        return next(self._pushes)


class CodingLoop:
    """A coding loop in `folder` whose agents and commands are the streams given."""

    def __init__(
        self,
        folder: Path,
        *,
        planning: list[Observable[Any] | AgentRun],
        implementing: list[Observable[Any]] | None = None,
        reviewing: list[Observable[Any] | AgentRun] | None = None,
        commands: dict[str, list[Observable[Any]]] | None = None,
        commits: list[Observable[Any]] | None = None,
        pushes: list[Observable[Any]] | None = None,
        fingerprints: Iterable[str] = (),
        can_resume: bool = False,
        gate: QuotaGate | None = None,
    ) -> None:
        self.folder = folder
        (folder / ".specs").mkdir(exist_ok=True)
        self.workspace = Workspace(folder)
        runs: dict[Role, list[Any]] = {
            "planning": [
                run if isinstance(run, AgentRun) else AgentRun(run, plan=PLAN) for run in planning
            ],
            "implementing": implementing or [],
            "reviewing": reviewing or [],
        }
        self.agent = InMemoryAgent(runs, can_resume=can_resume)
        self.gate = gate or QuotaGate()
        self.repository = MarbleRepository(*(commits or ()), pushes=pushes or ())
        self.ran: list[str] = []
        self.work = FakeWork()
        self._commands = {name: iter(streams) for name, streams in (commands or {}).items()}
        self._fingerprints = iter(fingerprints)
        self.service = LoopService(
            Services(
                agent=self.agent,
                workspace=self.workspace,
                repository=self.repository,
                prompts=Prompts(),
                shell=self._shell,
                gate=self.gate,
                work=self.work,
                fingerprint=lambda *_, **__: defer(lambda _: just(next(self._fingerprints))),
            )
        )

    def run(self, **options: Any) -> Observable[ev.LoopEvent]:
        """The loop, without a check before the first agent; commands are `setup` and `check`."""
        given = {"focus": "the page", "cwd": self.folder, "baseline": "skip", **options}
        return self.service.run(LoopRunOptions(**given))

    def can_run(self, command: str, *streams: Observable[Any]) -> None:
        """Let another command play these streams."""
        self._commands[command] = iter(streams)

    def prompts(self, role: Role) -> list[str]:
        """Return the system prompts of the role's sessions."""
        return [o.system_prompt or "" for o in self.agent.spawned if o.role == role]

    def assert_released(self) -> None:
        """Assert that no session file is left and the workspace is free."""
        assert [] == list(self.workspace.wip.iterdir())
        with self.workspace.lock():
            pass

    def _shell(self, command: str, _cwd: Path) -> Observable[bytes]:
        self.ran.append(command)
        return next(self._commands[command])


def drawn(
    folder: Path,
    t: Marbles,
    planning: str | list[Any],
    implementing: str | list[Any] = "",
    reviewing: str | list[Any] = "",
    **given: Any,
) -> CodingLoop:
    """A loop whose agents are diagrams, or streams; a word is a session."""
    roles = {"planning": planning, "implementing": implementing, "reviewing": reviewing}
    runs: dict[str, Any] = {
        role: [t.cold(word) for word in said.split()] if isinstance(said, str) else said
        for role, said in roles.items()
    }
    return CodingLoop(folder, **runs, **given)


def fails(code: int) -> Observable[Any]:
    """A command that prints nothing and exits with the code."""
    return throw(ProcessFailed("sh", code, ""))


def tags(seen: list[Seen]) -> str:
    """The names of the events, for a story in which times do not matter."""
    return " ".join(value.tag for _, kind, value in seen if kind == "next")


def outputs(seen: list[Seen]) -> list[tuple[str, int | None]]:
    """The command outputs of a story: which, and with what code."""
    return [
        (value.tag, value.exit_code)
        for _, kind, value in seen
        if kind == "next" and isinstance(value, ev.CheckCommandOutput | ev.SetupCommandOutput)
    ]
