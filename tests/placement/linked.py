"""A link to workers in this process, which a test can kill, cut off and leave behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from reactivex import Observable, abc, defer, empty, just, operators as ops
from reactivex.disposable import Disposable
from reactivex.subject import ReplaySubject, Subject

import cuggino
from cuggino import Config, Runtime, events as ev
from cuggino.domain import item_name
from cuggino.placement import Cluster, ClusterAddress, run_on_cluster
from cuggino.placement.dask.values import AttemptLost, DaskWorker, Placed, PlaceGone
from cuggino.placement.worker import work_in
from cuggino.storage import Workspace
from tests.git_project import GitProject
from tests.placement.agent import ItemAgent, sessions

WAITS = ev.WatchBacklogWaiting | ev.WatchSpecIssueWaiting | ev.WatchItemRetry | ev.WatchItemParked


class Attempt:
    """An attempt on a worker; its texts are kept until they are received."""

    def __init__(self, placed: Placed, text: str) -> None:
        self.placed = placed
        self.given = json.loads(text)
        self.given["options"]["retry_pause"] = 0.0  # a test need not wait
        self.item = item_name(self.given["item"]).removesuffix(".md")
        self.texts: ReplaySubject[str] = ReplaySubject()
        self.orders: ReplaySubject[str] = ReplaySubject()
        self.told: list[str] = []
        """All orders."""
        self.said: list[str] = []
        """All texts."""
        self.gone: ReplaySubject[PlaceGone] = ReplaySubject()
        self.error: Exception | None = None
        self.is_over = self.is_cut = False
        self._working: abc.DisposableBase = Disposable()

    def begin(
        self, folder: Path, scheduler: abc.SchedulerBase | None, note: Callable[[str], None]
    ) -> None:
        def say(text: str) -> None:
            if self.is_over:
                return
            self.said.append(text)
            note(text)
            if not self.is_cut:
                self.texts.on_next(text)

        self._scheduler = scheduler
        working = work_in(folder, json.dumps(self.given), self.orders)
        self._working = working.subscribe(say, self._failed, self._ended, scheduler=scheduler)

    def _failed(self, error: Exception) -> None:
        self.error, self.is_over = error, True
        if not self.is_cut:
            self.texts.on_error(error)

    def _ended(self) -> None:
        self.is_over = True
        if not self.is_cut:
            self.texts.on_completed()

    def kill(self) -> None:
        """Kill the worker: nothing more of the attempt is heard, and nothing of it goes on."""
        self.is_over = True
        self.cut()
        self.stop()

    def cut(self, cause: Any = "worker") -> None:
        """Cut the worker off: it keeps running, but its texts are lost."""
        if not self.is_cut:
            self.is_cut = True
            gone = PlaceGone(self.placed.key, self.placed.worker, cause, "it was killed")
            self.gone.on_next(gone)
            self.texts.on_error(AttemptLost(gone))

    def hear(self, order: str) -> None:
        """Take an order, in a separate turn on the lane."""
        assert self._scheduler is not None
        self._scheduler.schedule(lambda *_: self.orders.on_next(order))

    def stop(self) -> None:
        """End the work, in a separate turn on the lane."""
        assert self._scheduler is not None
        self._scheduler.schedule(lambda *_: self._working.dispose())

    def release(self) -> None:
        """End the work at once, after the lane has ended."""
        self.is_over = True
        self._working.dispose()


class _When(NamedTuple):
    matches: Callable[[Attempt, str], bool]
    act: Callable[[Attempt], object]


class Linked:
    """Workers in this process, as `DaskLink` would link them.

    Each worker has one attempt at a time. A dead one takes no more attempts.
    """

    def __init__(self, root: Path, workers: Iterable[str] = ("w1", "w2", "w3")) -> None:
        self._root = root
        self.names = list(workers)
        self.dead: set[str] = set()
        self.dashboard = "http://127.0.0.1:8787/status"
        self.attempts: list[Attempt] = []
        """All that were placed, in order."""
        self.cancelled: list[str] = []
        self.endings: dict[str, Observable[Any]] = {}
        """Complete when a cancelled attempt at the item has ended; default: at once."""
        self.client_is_dead = False
        self._whens: list[_When] = []

    def when(self, tag: str, act: Callable[[Attempt], object], *, item: str | None = None) -> None:
        """Do something once with the first attempt that emits such an event, before it is heard."""
        self.when_text(f'{{"_tag":"{tag}"', act, item=item)

    def when_text(
        self, start: str, act: Callable[[Attempt], object], *, item: str | None = None
    ) -> None:
        """Do something once with the first attempt that emits such a text."""

        def matches(attempt: Attempt, text: str) -> bool:
            return text.startswith(start) and item in (None, attempt.item)

        self._whens.append(_When(matches, act))

    def kill(self, attempt: Attempt) -> None:
        """Kill the worker of an attempt."""
        self.dead.add(attempt.placed.worker)
        attempt.kill()

    def cut(self, attempt: Attempt) -> None:
        """Cut the worker of an attempt off."""
        self.dead.add(attempt.placed.worker)
        attempt.cut()

    def __enter__(self) -> Linked:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def close(self) -> None:
        """Release what still runs of attempts whose client or worker was killed."""
        for attempt in self.attempts:
            attempt.release()

    def of(self, item: str) -> list[Attempt]:
        """Return the attempts at an item."""
        return [attempt for attempt in self.attempts if attempt.item == item]

    def _note(self, attempt: Attempt, text: str) -> None:
        for when in list(self._whens):
            if when.matches(attempt, text):
                self._whens.remove(when)
                when.act(attempt)

    def _by_key(self, placed: Placed) -> Attempt:
        return next(one for one in self.attempts if one.placed.key == placed.key)

    # What `DaskLink` does.

    def place(
        self, key: str, work: str, task: str, *, needs: Mapping[str, float] | None = None
    ) -> Observable[Placed]:
        def begin(
            observer: abc.ObserverBase[Placed], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            assert task == "cuggino.placement.worker:work"
            busy = {one.placed.worker for one in self.attempts if not one.is_over}
            worker = next(name for name in self.names if name not in busy | self.dead)
            attempt = Attempt(Placed(key, worker), work)
            self.attempts.append(attempt)
            note = lambda text: self._note(attempt, text)  # noqa: E731
            attempt.begin(self._root / worker, scheduler, note)
            observer.on_next(attempt.placed)
            observer.on_completed()
            return Disposable()

        return Observable(begin)

    def events(self, placed: Placed) -> Observable[str]:
        return self._by_key(placed).texts

    def gone(self, placed: Placed) -> Observable[PlaceGone]:
        return self._by_key(placed).gone

    def cancel(self, placed: Placed) -> Observable[None]:
        if not self.client_is_dead:
            attempt = self._by_key(placed)
            self.cancelled.append(attempt.item)
            if not attempt.is_over and not attempt.is_cut:
                attempt.is_over = True
                attempt.stop()
            return self.endings.get(attempt.item, empty())
        return empty()

    def tell(self, placed: Placed, order: str) -> None:
        attempt = self._by_key(placed)
        attempt.told.append(order)
        if not attempt.is_cut:
            attempt.hear(order)

    def attach(self, prefix: str = "") -> Observable[Placed]:
        def begin(
            observer: abc.ObserverBase[Placed], _scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            if self.client_is_dead:
                self.client_is_dead = False
                for one in self.attempts:
                    if not one.is_cut and one.placed.key.startswith(prefix) and not one.is_over:
                        observer.on_next(one.placed)
            observer.on_completed()
            return Disposable()

        return Observable(begin)

    def workers(self) -> Observable[tuple[DaskWorker, ...]]:
        found = (DaskWorker(name, name, 1, {}, {}, ()) for name in self.names)
        return just(tuple(found))


class ClusterProject:
    """A project with a shared repository, whose items are worked on by linked workers."""

    def __init__(
        self, place: Path, *, within: str = ".", slots: int = 2, remote: bool = True, **config: Any
    ) -> None:
        self.place = place
        self.git = GitProject(place / "project")
        self.folder = self.git.root / within
        self.slots = slots
        prefix = "" if within == "." else f"{within}/"
        for path, text in (
            (f"{prefix}.specs/words.md", "A file for each word.\n"),
            (".gitignore", ".cuggino\n*.secret\n"),
            (f"{prefix}shared.txt", "begin\n"),
            (f"{prefix}check.sh", "! grep -q '<<<<' *.txt && test ! -e broken\n"),
        ):
            self.git.write(path, text)
        self.git.git("add", "-A")
        self.git.git("commit", "-q", "-m", "Begin")
        self.remote = place / "remote.git"
        if remote:
            self.git.git("init", "-q", "--bare", str(self.remote))
            self.git.git("remote", "add", "origin", str(self.remote))
        self.workspace = Workspace(self.folder)
        self.workspace.open()
        settings = {
            "agent": f"{ItemAgent.__module__}:{ItemAgent.__qualname__}",
            "commit": True,
            "sandbox": "off",
            "guard": "off",
            "check_command": "sh check.sh",
            "settle_seconds": 0.01,
        }
        self.config = Config(**{**settings, **config})
        self.link = Linked(place / "workers")
        self.control: Observable[Any] | None = None
        self.interrupt: Subject[object] = Subject()

    def item(self, *names: str, text: str = "") -> None:
        """Add items to the backlog."""
        for name in names:
            (self.workspace.backlog / f"{name}.md").write_text(text or f"# {name}\n")

    @property
    def runtime(self) -> Runtime:
        runtime = Runtime.live(cwd=self.folder, config=self.config)
        return runtime if self.control is None else runtime.replace(control=self.control)

    def stream(self) -> Observable[ev.Event]:
        """Return a watch with its own client, until it waits or an item fails."""
        runtime = self.runtime
        cluster = Cluster(
            runtime.services,
            runtime.config,
            self.link,  # type: ignore[arg-type]
            cwd=self.folder,
            slots=self.slots,
            agent=runtime.agent_name,
        )
        watch: Observable[ev.Event] = runtime.watch(placement=cluster)
        return watch.pipe(ops.take_while(lambda e: not isinstance(e, WAITS), inclusive=True))

    def run(self, *, resume: bool = False, detach: bool = False) -> Observable[ev.Event]:
        """Return a run on the workers, or the run that resumes it."""
        runtime = self.runtime
        begin: Callable[..., Any] = runtime.resume if resume else runtime.run
        start = begin if resume else partial(begin, focus="Words")
        address = ClusterAddress(address="tcp://127.0.0.1:1", detach=detach)
        return run_on_cluster(runtime, address, start, interrupt=self.interrupt)

    def later(
        self, before: Callable[[ClusterProject], object] | None = None
    ) -> Observable[ev.Event]:
        """Return the watch of another client, which begins when it is subscribed to."""

        def begin(_: object) -> Observable[ev.Event]:
            if before is not None:
                before(self)
            return self.stream()

        return defer(begin)

    def watch(self) -> list[ev.Event]:
        """Run the watch until it waits or an item fails; return its events."""
        return list(cuggino.iterate(self.stream()))

    def watch_until(self, ends: Callable[[ev.Event], bool]) -> list[ev.Event]:
        """Run the watch until such an event, and end it then."""

        def goes_on(event: ev.Event) -> bool:
            return not ends(event)

        until = self.stream().pipe(ops.take_while(goes_on, inclusive=True))
        return list(cuggino.iterate(until))

    def landed(self) -> list[str]:
        """Return the items that have landed, by the commits of the branch."""
        trailer = "--format=%(trailers:key=Item,valueonly,separator=)"
        listed = self.git.git("log", "--first-parent", "--reverse", trailer, "main").split()
        return [name.removesuffix(".md") for name in listed]

    def shared(self, *words: str) -> str:
        """Return what git prints of the shared repository."""
        return self.git.git("--git-dir", str(self.remote), *words)

    def shared_refs(self) -> list[str]:
        """Return the refs of the shared repository, without their common start."""
        names = self.shared("for-each-ref", "--format=%(refname)", "refs/cuggino").split()
        return [name.removeprefix("refs/cuggino/") for name in names]


def tags(events: Iterable[ev.Event], *wanted: str) -> list[str]:
    """Return the tags of the events that are wanted, each with its item."""
    found = ((event.tag, (event.item or "").removesuffix(".md")) for event in events)
    return [f"{tag} {item}".strip() for tag, item in found if tag in wanted]


def works(role: str, item: str = "one") -> Callable[[ev.Event], bool]:
    """Return whether an event is a tool call of the item's session of the role."""

    def is_call(event: ev.Event) -> bool:
        at_work = isinstance(event, ev.ToolCall) and event.item == f"{item}.md"
        return at_work and sessions(item)[-1:] == [role]

    return is_call
