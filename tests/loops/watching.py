"""A watch in virtual time: real folders, changed by a timeline; loops and audits as drawn."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from reactivex import Observable, abc, never, operators as ops, timer
from reactivex.disposable import Disposable
from reactivex.subject import Subject

from cuggino import events as ev
from cuggino.errors import AgentFailed, LoopError
from cuggino.folders import PollingStarted
from cuggino.loops import LoopRunOptions, Services, WatchRunOptions, WatchService
from cuggino.operators.merge_now import merge_now
from cuggino.storage import Workspace
from cuggino.testing import AgentRun, InMemoryAgent, Marbles, Seen

Outcome = str | Exception


class ScriptedLoop:
    """A coding loop with given durations and results."""

    def __init__(self, workspace: Workspace, runs: list[tuple[float, Outcome]]) -> None:
        self._workspace = workspace
        self._runs = iter(runs)
        self.options: list[LoopRunOptions] = []
        self.disposed = 0

    def check(self) -> None:
        """Nothing to look at."""

    def run(self, options: LoopRunOptions, **_durable: object) -> Observable[Any]:
        def subscribe(
            observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            self.options.append(options)
            duration, outcome = next(self._runs, (1e9, "approved"))
            running = timer(duration).pipe(ops.map(lambda _: self._end(outcome)))
            return running.pipe(ops.finally_action(self._released)).subscribe(
                observer, scheduler=scheduler
            )

        return Observable(subscribe)

    def _released(self) -> None:
        self.disposed += 1

    def _end(self, outcome: Outcome) -> ev.Event:
        match outcome:
            case "approved":
                return ev.LoopApproved(iteration=1)
            case "max_iterations":
                return ev.LoopMaxIterations(iteration=3, max_iterations=3)
            case "stalled":
                return ev.LoopStalled(
                    iteration=3,
                    reason="no_progress",
                    message="no progress",
                    findings=("the title is missing",),
                )
            case "spec_issue":
                name = self._workspace.write_spec_issue("unclear")
                return ev.LoopSpecIssue(iteration=1, content="unclear", filename=name)
            case Exception():
                raise outcome
            case _:
                raise LoopError("implementing", str(outcome))


class Watching:
    """A watch over a real folder, in the virtual time of its marbles."""

    def __init__(
        self,
        folder: Path,
        *,
        loops: list[tuple[float, Outcome]] | None = None,
        audits: list[Observable[Any]] | None = None,
        **options: Any,
    ) -> None:
        self.t = Marbles()
        self.workspace = Workspace(folder)
        self.workspace.open()
        self.loop = ScriptedLoop(self.workspace, loops or [])
        self.agent = InMemoryAgent({"audit": [AgentRun(audit) for audit in audits or []]})
        self.watched: list[Path] = []
        self._changes: dict[Path, Subject[object]] = {}
        self._polled: set[Path] = set()
        self.options = WatchRunOptions(cwd=folder, audit=bool(audits), **options)
        self.obey(never())

    def obey(self, commands: Observable[Any]) -> None:
        """Obey what a person asks in the timeline."""
        service = WatchService(
            Services(
                agent=self.agent, workspace=self.workspace, changes=self.changes, control=commands
            ),
            loop=self.loop,  # type: ignore[arg-type]  # a double of the one method that is used
        )
        self.stream = service.run(self.options)

    def changes(self, folder: Path) -> Observable[object]:
        """Return the changes of the folder in the timeline, and count its watchers."""
        subject = self._changes.setdefault(folder, Subject())

        def subscribe(
            observer: abc.ObserverBase[object], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            self.watched.append(folder)
            inner = subject.subscribe(observer, scheduler=scheduler)
            if folder in self._polled and scheduler is not None:
                notice = PollingStarted(folder, "no watches left")
                scheduler.schedule(lambda *_: subject.on_next(notice))

            def leave() -> None:
                self.watched.remove(folder)
                inner.dispose()

            return Disposable(leave)

        return Observable(subscribe)

    def at(self, when: float, do: Callable[[], object], folder: Path | None = None) -> None:
        """Do something at a virtual second; a change of `folder` is reported."""

        def act(*_: object) -> None:
            do()
            if folder is not None:
                self._changes.setdefault(folder, Subject()).on_next("changed")

        if when == 0:
            do()
        else:
            self.t.scheduler.schedule_absolute(when, act)

    def polled(self, folder: Path) -> None:
        """The system does not report the changes of this folder."""
        self._polled.add(folder)

    def write(self, when: float, name: str, text: str = "task") -> None:
        """Write a backlog item."""
        backlog = self.workspace.backlog
        self.at(when, lambda: (backlog / name).write_text(text), backlog)

    def play(self, until: float, **kwargs: Any) -> list[Seen]:
        """Return the events up to `until`."""
        return self.t.record(self.stream, until=until, **kwargs)

    def story(self, until: float, **kwargs: Any) -> list[tuple[Any, ...]]:
        """The same as (second, tag) or (second, tag, filename)."""
        return list(times_and_tags(self.play(until, **kwargs)))

    @property
    def backlog(self) -> list[str]:
        return sorted(path.name for path in self.workspace.backlog.iterdir())


def times_and_tags(seen: list[Seen]) -> Iterator[tuple[Any, ...]]:
    """Events as (second, tag) or (second, tag, filename); an error as (second, its class)."""
    for when, kind, value in seen:
        if kind == "next":
            name = getattr(value, "filename", None)
            yield (when, value.tag, name) if name is not None else (when, value.tag)
        else:
            yield (when, kind if value is None else type(value).__name__)


def line(story: Iterable[tuple[Any, ...]]) -> str:
    """Return the story in a line: `5 ItemRetry 001.md` for a `WatchItemRetry` at 5 seconds."""
    return ", ".join(
        " ".join((f"{when:g}", *(str(word).removeprefix("Watch") for word in words)))
        for when, *words in story
    )


def audit_run(run: dict[str, Any]) -> Observable[Any]:
    """The audit agent of a case: its findings at their seconds, its end."""
    said = [_finding(finding) for finding in run.get("findings", ())]
    ending: Observable[Any]
    if run.get("fails_at") is not None:
        ending = timer(run["fails_at"]).pipe(ops.map(_fail))
    elif run.get("ends_at") is not None:
        ending = timer(run["ends_at"]).pipe(ops.ignore_elements())
    else:
        ending = never()
    return merge_now(*said, ending)


def _finding(finding: dict[str, Any]) -> Observable[Any]:
    text = f"<TO_BE_DISCUSSED>{finding['content']}</TO_BE_DISCUSSED>"
    said = ev.AgentMessage(text=text, message_id=str(uuid.uuid4()))
    return timer(finding["t"]).pipe(ops.map(lambda _: said))


def _fail(_tick: Any) -> Any:
    raise AgentFailed("Audit agent failed", reason="crash")
