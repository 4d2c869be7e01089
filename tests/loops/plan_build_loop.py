"""A plan/build loop with scripted sessions, verdicts, commits and time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reactivex import Observable, concat, defer, just, throw

from cuggino import events as ev
from cuggino.agents.base import SpawnOptions
from cuggino.errors import AgentFailed, AgentFailure, ProcessFailed
from cuggino.loops import PlanBuildOptions, PlanBuildService, Services
from cuggino.operators.supervision import QuotaGate
from cuggino.stages import WAITING_SECTION, Commit
from cuggino.storage import Workspace
from cuggino.testing import Marbles
from tests.loops.session_loop import DONE, SessionLoop, SessionStory, TurnAgent

ANSWER = (ev.AgentMessage(text="said"), DONE)
DONE_FILE = "lopen.loop.done"
JOBS = "docs/requirements/jobs-to-be-done.json"
SPECIFICATION = "docs/requirements/bread/SPECIFICATION.md"
PROMPTS = {"PLAN.PROMPT.md": "Plan.\n", "BUILD.PROMPT.md": "Build.\n"}

Files = Mapping[str, str | None]
"""Content by path in the project; None for what is to be removed."""


def jobs(**statuses: str) -> str:
    """A jobs file; job J1 is for REQ-1, and each has a key that the loop does not know."""
    items = [
        {
            "id": name,
            "requirementCode": f"REQ-{name[1:]}",
            "description": f"bake {name}",
            "status": status,
            "priority": n,
            "owner": "kitchen",
        }
        for n, (name, status) in enumerate(statuses.items(), 1)
    ]
    return json.dumps({"jobs": items, "version": 7})


def has(done: bool = False, **statuses: str) -> dict[str, str | None]:
    """The jobs file with these statuses, and the done file."""
    files: dict[str, str | None] = {JOBS: jobs(**statuses)}
    return {**files, DONE_FILE: "done"} if done else files


def write(folder: Path, files: Files) -> None:
    """Write or remove the files."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(content)


@dataclass(frozen=True, slots=True)
class Does:
    """A side effect within an agent's stream: files and commits."""

    files: Files = field(default_factory=dict)
    commits: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """One session: its files at the start, its events and its error."""

    leaves: Files = field(default_factory=dict)
    events: Sequence[ev.Event | Does] = ANSWER
    error: Exception | None = None
    stream: Observable[Any] | None = None
    """In the place of `events` and `error`."""
    commits: Sequence[str] = ()


def crash(
    message: str = "it crashed", leaves: Files | None = None, *, reason: AgentFailure = "crash"
) -> Turn:
    """A session that fails without a result."""
    return Turn(leaves or {}, (), AgentFailed(message, reason=reason))


def says(text: str) -> Turn:
    """Return a session that emits this text and completes."""
    return Turn(events=(ev.AgentMessage(text=text), DONE))


def verdict(complete: bool = True, *issues: str, **parts: bool) -> Turn:
    """Return a verifying session with this verdict."""
    names = ("complete", "testsPass", "documentationExists", "buildSucceeds", "requirementValid")
    return says(json.dumps({**dict.fromkeys(names, complete), **parts, "issues": list(issues)}))


def is_of_job(options: SpawnOptions) -> bool:
    """Return whether a verifying session is for a job, not for the build."""
    return "Another session says that a job" in options.prompt


@dataclass
class Builders(TurnAgent):
    """An agent that plays the turns of each role in order."""

    project: PlanBuildLoop

    def of(self, role: str) -> list[SpawnOptions]:
        """Return the options of the sessions of a role."""
        return [options for options in self.spawned if options.role == role]

    def turn(self, options: SpawnOptions) -> Turn:
        project, role = self.project, str(options.role)
        if role == "judge" and callable(project.judge):
            return project.judge(options)
        turns: Any = {"plan": project.plan, "build": project.build, "judge": project.judge}[role]
        left = turns[len(self.of(role)) :]
        turn = left[0] if left else project.spare
        assert turn is not None, f"one session too many: {role}"
        assert isinstance(turn, Turn)
        return turn

    def begin(self, turn: Turn, options: SpawnOptions) -> None:
        self.do(Does(turn.leaves, turn.commits))

    def do(self, item: ev.Event | Does) -> list[ev.Event]:
        if not isinstance(item, Does):
            return [item]
        write(self.project.folder, item.files)
        self.project.log.extend(item.commits)
        return []


def plan_build_marbles(**events: Any) -> Marbles:
    """Letters for what agents say: `a` a word, `d` a good end, `j` a verdict that it is so."""
    yes = verdict().events[0]
    return Marbles(
        **{"a": ev.AgentMessage(text="working"), "d": DONE, "j": yes, "S": "stop", **events}
    )


class RecordedBuild(SessionStory):
    """The events of a plan/build run."""

    end = ev.PlanBuildEnded
    session = ev.PlanBuildSessionEnded
    warning = ev.PlanBuildWarning

    @property
    def phases(self) -> list[tuple[str, int]]:
        """The phase of each session, and its iteration."""
        return [(e.phase, e.iteration) for e in self.of(ev.PlanBuildPhaseStarted)]

    @property
    def verdicts(self) -> list[tuple[str, bool]]:
        """The verified jobs and their verdicts."""
        return [(event.job_id, event.passed) for event in self.of(ev.JobVerified)]


@dataclass
class PlanBuildLoop(SessionLoop):
    """A project in which the loop is run in virtual time."""

    folder: Path
    build: Sequence[Turn] = ()
    judge: Sequence[Turn] | Callable[[SpawnOptions], Turn] = field(
        default_factory=lambda: lambda _options: verdict()
    )
    plan: Sequence[Turn] = ()
    files: Files = field(default_factory=dict)
    """What is there besides prompts and specification, or instead of them."""
    marbles: Marbles = field(default_factory=plan_build_marbles)
    spare: Turn | None = None
    """What is played when all turns were; without one there is one session too many."""
    shells: Mapping[str, Observable[bytes] | int] = field(default_factory=dict)
    """What the project's commands do: their output, or how they exit at once."""
    fingerprints: Iterable[str] | None = None
    """The state of the project at each look; without them it is another one each time."""
    log: list[str] = field(default_factory=list)
    """The subjects of all commits; what the loop commits itself comes here too."""
    head: Observable[Any] | None = None
    committing: Observable[Any] | None = None
    """What a commit does; without it, it is made at once."""
    gate: QuotaGate = field(default_factory=QuotaGate)
    can_resume: bool = False
    agents: type[Builders] = Builders
    """What the agent is."""
    story = RecordedBuild

    def __post_init__(self) -> None:
        codes = "".join(f"## REQ-{n}\n" for n in range(1, 10))
        head = {".git/HEAD": "ref: refs/heads/bread\n"}
        write(self.folder, {**head, **PROMPTS, SPECIFICATION: codes, **self.files})
        self.agent = self.agents(self, can_resume=self.can_resume)
        self.workspace = Workspace(self.folder)
        self._states = iter(self.fingerprints or map(str, range(1_000_000)))
        self.service = PlanBuildService(
            Services(
                agent=self.agent,
                workspace=self.workspace,
                repository=Repository(self),
                shell=self._shell,
                gate=self.gate,
                fingerprint=self.fingerprint,
                commits=self._commits,
            )
        )

    def _shell(self, command: str, _cwd: Path) -> Observable[bytes]:
        does = self.shells[command]
        if not isinstance(does, int):
            return does
        said = just(f"{command} says {does}\n".encode())
        return concat(said, throw(ProcessFailed(command, does, ""))) if does else said

    def _commits(self, _cwd: Path, base: str | None) -> Observable[list[list[str]]]:
        def look(_scheduler: object) -> Observable[list[list[str]]]:
            begin = int(base or 0)
            return just([[f"h{n}", text] for n, text in enumerate(self.log) if n >= begin])

        return defer(look)

    def options(self, **given: Any) -> PlanBuildOptions:
        settings = {"start": "build", "iteration_pause": 0.0, "max_sessions": 20, **given}
        return PlanBuildOptions(cwd=self.folder, **settings)

    @property
    def statuses(self) -> dict[str, str]:
        """The status of each job."""
        return {job["id"]: job["status"] for job in self.jobs}

    @property
    def jobs(self) -> list[dict[str, Any]]:
        path = self.folder / JOBS
        found: list[dict[str, Any]] = json.loads(path.read_text())["jobs"] if path.exists() else []
        return found

    @property
    def is_done(self) -> bool:
        """The done file exists."""
        return (self.folder / DONE_FILE).is_file()

    @property
    def prompts(self) -> list[str]:
        """The prompts of the building sessions, without the section on waiting that ends each."""
        prompts = [options.prompt for options in self.agent.of("build")]
        assert all(prompt.endswith(WAITING_SECTION) for prompt in prompts)
        return [prompt.removesuffix(f"\n\n{WAITING_SECTION}") for prompt in prompts]


@dataclass
class Repository:
    """Commits into the project's log; a commit is called after the number of those before it."""

    project: PlanBuildLoop

    def head(self) -> Observable[str | None]:
        return self.project.head or defer(lambda _: just(str(len(self.project.log))))

    def commit(self, message: str, *, exclude: tuple[Path, ...] = ()) -> Observable[Commit]:
        def make(_scheduler: object) -> Observable[Commit]:
            if self.project.committing is not None:
                return self.project.committing
            self.project.log.append(message)
            return just(Commit(hash=f"h{len(self.project.log) - 1}", message=message))

        return defer(make)

    def push(self, remote: str, branch: str) -> Observable[Any]:
        raise AssertionError("nothing is pushed")
