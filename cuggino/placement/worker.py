"""The work of a worker: an attempt at an item, in a clone of the shared repository."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from reactivex import Observable, never
from reactivex.subject import Subject

from cuggino import events as ev
from cuggino.domain import item_name
from cuggino.errors import CugginoError, ProcessError
from cuggino.files import remove, storing
from cuggino.git import Git
from cuggino.loops import Commands, Control, Interruption, Returned, Services, Work, attempt
from cuggino.operators import Flow, ask, emit, flow, forward
from cuggino.operators.alongside import alongside
from cuggino.operators.mapcat import mapcat
from cuggino.placement.assignment import Assignment, unpack
from cuggino.placement.limits import add_windows, close_gates, limits_met, windows_known
from cuggino.placement.mirror import PLACED, Growth
from cuggino.placement.wire import Failed, Limits, Said, decode, encode
from cuggino.runtime import Runtime
from cuggino.sandbox import views_of
from cuggino.stages import act, lane
from cuggino.stages.slots import (
    TRUNK,
    NotKept,
    Slot,
    WorkRef,
    candidate_ref,
    config_text,
    given_ref,
    kept_ref,
    prepare_slot,
    publish_candidate,
    read_record,
    work_ref,
    write_record,
)
from cuggino.storage import Workspace

_OF_CLIENT = (
    ev.BudgetWarning,
    *(ev.ContinueAsked, ev.ControlIgnored, ev.PauseAsked, ev.SteerAsked, ev.StopAsked),
)
"""Events that the client emits itself, for all attempts."""
_PLACED = f"{PLACED}/"


def work(text: str, orders: Observable[str]) -> Observable[str]:
    """Work on the assignment in the text, in the folder of this Dask worker; see `attempt`."""
    from distributed import Worker

    worker = next(iter(Worker._instances))  # one in each process
    return work_in(Path(worker.local_directory) / "cuggino", text, orders)


def work_in(folder: Path, text: str, orders: Observable[str]) -> Observable[str]:
    """Work on the assignment in the text. Cold; emits texts for the client.

    ::

        files and events ... [error]|

    `orders` are a person's commands for the item, and usage limits that others have met. The clone
    is made below `folder` and reused by later attempts.
    """
    assignment = Assignment.model_validate_json(text)
    return flow(lambda: _RemoteAttempt(assignment, orders, folder).run())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Desk:
    """The folders of one attempt at a time."""

    top: Path
    """The clone of the shared repository, which may not exist yet."""
    project: Path
    """The project in the clone; only files that are not in git lie there."""
    slot: Slot
    """The slot where agents work."""
    elsewhere: Path
    """The client's files of an unfinished attempt, laid out like another slot."""


class _RemoteAttempt:
    def __init__(self, assignment: Assignment, orders: Observable[str], folder: Path) -> None:
        self._given = assignment
        self._orders = orders
        self._folder = folder
        self._name = item_name(assignment.item)
        ref = work_ref(self._name, within=assignment.refs)
        self._work = WorkRef(assignment.remote, ref, key=assignment.key)
        self._limits = Limits(())
        self._fresh: Subject[str] = Subject()
        """Messages about work that has just been saved."""
        self._has_candidate = False

    def run(self) -> Flow[None]:
        with _free_desk(self._folder, self._given) as desk:
            try:
                yield from self._prepared(desk)
                yield from self._told(desk)
            except CugginoError as error:
                yield from emit(encode(Failed(error)))

    # The clone.

    def _prepared(self, desk: _Desk) -> Flow[None]:
        """Set up the clone and the workspace like the client's."""
        given, top = self._given, desk.top
        yield from ask(act(partial(_empty, desk)))
        if not (top / ".git" / "HEAD").is_file():
            top.mkdir(parents=True, exist_ok=True)
            yield from Git(cwd=top).must("init", "--quiet", "--template=", ".")
        with storing("write", top / ".git"):
            settings = (top / ".git" / "config").read_text(encoding="utf-8")
            own = settings.partition("# Of the client\n")[0]
            text = config_text(given.settings)
            (top / ".git" / "config").write_text(f"{own}# Of the client\n{text}", encoding="utf-8")
            (top / ".git" / "info").mkdir(exist_ok=True)
            (top / ".git" / "info" / "exclude").write_text(given.exclude, encoding="utf-8")
            desk.project.mkdir(parents=True, exist_ok=True)
            unpack(given.files, desk.project)
            workspace = Workspace(desk.project)
            workspace.open()
            at_home = (file for file in given.state if not file.path.startswith(_PLACED))
            unpack(at_home, workspace.folder)
            self._unpack_attempt(desk)
        yield from self._fetched(top)

    def _unpack_attempt(self, desk: _Desk) -> None:
        """Unpack the files of an unfinished attempt as if they were another slot's."""
        for file in self._given.state:
            name = file.path.removeprefix(_PLACED)
            if name == "MERGE_HEAD":
                git = desk.elsewhere / ".git"
                unpack([file.model_copy(update={"path": name})], git)
            elif name != file.path:
                inside = desk.elsewhere / self._given.within / ".cuggino"
                unpack([file.model_copy(update={"path": name})], inside)

    def _fetched(self, top: Path) -> Flow[None]:
        """Fetch the base and the work so far, and take the item over."""
        given, name, git = self._given, self._name, Git(cwd=top)
        words = ("for-each-ref", "--format=delete %(refname)", "refs/cuggino")
        listed = (yield from git.must(*words)).text
        if listed:
            yield from git.must("update-ref", "--stdin", stdin=f"{listed}\n".encode())
        received = partial(given_ref, name, within=given.refs)
        specs = [f"+{received('base')}:{TRUNK}"]
        if given.candidate is not None:
            specs.append(f"+{received('candidate')}:{candidate_ref(name)}")
        yield from git.fetch(given.remote, *specs)
        claimed = yield from self._work.claim(git, given.base)
        if claimed is not None:
            yield from git.must("update-ref", kept_ref(name, 1), claimed)

    # The attempt.

    def _told(self, desk: _Desk) -> Flow[None]:
        given = self._given
        here = yield from ask(lane())
        assert here is not None
        runtime = Runtime.live(
            cwd=desk.project, config=given.configuration(), agent=given.agent or None
        )
        services = replace(runtime.services, control=never(), control_folder=None)
        close_gates(services.gate, services.agent, given.limits, here.now)
        add_windows(services.gate, given.windows)
        home = services.workspace
        names = (file.path for file in given.state if file.path.startswith(_PLACED))
        known = [name.removeprefix(_PLACED) for name in names]
        growth = Growth(home, home.desk(desk.slot.folder), desk.slot, known)
        services = replace(services, save=lambda: flow(partial(self._saved_between, desk, growth)))
        interruption = Interruption()
        control = Control(interruption, here, item=self._name)

        def hear(text: str) -> Iterator[ev.ControlEvent]:
            match decode(text):
                case ev.ControlEvent() as command:
                    yield command
                case Limits(limits, windows):
                    close_gates(services.gate, services.agent, limits, here.now)
                    add_windows(services.gate, windows)
                case _:
                    pass

        def say(event: ev.WatchEvent) -> Iterator[str]:
            if not isinstance(event, ev.MessageDelta):
                yield from map(encode, growth.news())
            yield from (encode(said) for said in self._said(event, services, here.now))

        commands: Observable[ev.ControlEvent] = self._orders.pipe(mapcat(hear))
        beside = alongside(self._fresh)
        working = control.watched(self._attempt(desk, services, control, growth))
        try:
            with Commands(control).heard(commands, here):
                yield from forward(interruption.ending(working).pipe(mapcat(say), beside))
        except CugginoError:
            yield from emit(*map(encode, self._limits_met(services, here.now)))
            yield from self._ended(desk, growth)
            raise
        yield from self._ended(desk, growth)

    def _said(self, event: ev.Event, services: Services, now: datetime) -> Iterator[Said]:
        if not isinstance(event, _OF_CLIENT):
            yield event
        if isinstance(event, ev.QuotaUsed | ev.QuotaWaiting | ev.RateLimited):
            yield from self._limits_met(services, now)

    def _limits_met(self, services: Services, now: datetime) -> Iterator[Limits]:
        limits = Limits(
            limits_met(services.gate, services.agent, now), windows_known(services.gate, now)
        )
        if limits != self._limits:
            self._limits = limits
            yield limits

    def _attempt(
        self, desk: _Desk, services: Services, control: Control, growth: Growth
    ) -> Observable[ev.WatchEvent]:
        given = self._given
        options = given.loop_options(desk.project)
        returned = None
        if given.candidate is not None and given.sent_back is not None:
            returned = Returned(given.candidate, given.sent_back)
        work = Work(
            options=options,
            slot=given.slot,
            base=given.base,
            number=given.number,
            returned=returned,
            control=control,
        )

        def publish(slot: Slot, **made: Any) -> Observable[ev.WatchEvent]:
            return flow(partial(self._published, desk, growth, publish_candidate(slot, **made)))

        prepare = partial(prepare_slot, specs=options.specs_path)
        return attempt(services, work, desk.slot, prepare=prepare, publish=publish)

    def _saved(self, desk: _Desk, growth: Growth) -> Flow[None]:
        """Push the work, so that another worker can resume it.

        Work that no commit can hold stays here, and the stage that made it is not reported.
        """
        specs = str(self._given.options.get("specs_path", ".specs"))
        with suppress(NotKept):
            yield from self._work.save(desk.slot, specs)
            growth.saved()

    def _saved_between(self, desk: _Desk, growth: Growth) -> Flow[None]:
        """Push the work before a session, and report it now: the first event may come late."""
        yield from self._saved(desk, growth)
        for change in growth.news():
            self._fresh.on_next(encode(change))

    def _ended(self, desk: _Desk, growth: Growth) -> Flow[None]:
        """Push the work of a run without a candidate, if possible, and report the rest."""
        if not self._has_candidate:
            with suppress(CugginoError):  # its journal entries are not reported then
                yield from self._saved(desk, growth)
        yield from emit(*map(encode, growth.news()))

    def _published(
        self, desk: _Desk, growth: Growth, published: Observable[ev.WatchEvent]
    ) -> Flow[None]:
        made: list[ev.WatchCandidate] = []

        def note(event: ev.Event) -> Iterator[ev.Event]:
            if isinstance(event, ev.WatchCandidate):
                made.append(event)
            else:
                yield event

        yield from forward(published.pipe(mapcat(note)))
        (candidate,) = made
        yield from self._work.offer(Git(cwd=desk.top), candidate.commit)
        self._has_candidate = True
        growth.saved()
        yield from emit(candidate)


@contextmanager
def _free_desk(folder: Path, given: Assignment) -> Iterator[_Desk]:
    """Lock the first desk that no other attempt uses; its clone is reused."""
    for number in range(1, 1000):
        home = folder / f"{number}"
        home.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(home / "lock", timeout=0):
                top = home / given.project
                record = home / "remote"
                if not record.is_file() or record.read_text("utf-8") != given.remote:
                    for old in home.iterdir():
                        if old.is_dir():
                            shutil.rmtree(old)
                    record.write_text(given.remote, "utf-8")
                project = top if given.within == "." else top / given.within
                slots = home / f"{given.project}.cuggino-slots"
                root = slots / "slot-1"
                slot = Slot(
                    number=given.slot,
                    root=root,
                    folder=root if given.within == "." else root / given.within,
                    project=project,
                    views=views_of(given.configuration()),
                )
                yield _Desk(top=top, project=project, slot=slot, elsewhere=slots / "slot-0")
                return
        except Timeout:
            continue
    raise ProcessError("cuggino", f"no attempt can be made in {folder}: all places are taken")


def _empty(desk: _Desk) -> None:
    """Remove the files of an earlier attempt, but keep git's objects and caches.

    That attempt may have been killed together with git. No other process uses the clone, so its
    lock files are stale.
    """
    with storing("clean", desk.top):
        for path in desk.top.iterdir() if desk.top.is_dir() else ():
            if path.name != ".git":
                remove(path)
        for path in [
            *(desk.top / ".git").glob("*.lock"),
            *(desk.top / ".git/refs").rglob("*.lock"),
        ]:
            path.unlink(missing_ok=True)
        remove(desk.elsewhere)
        desk.elsewhere.mkdir(parents=True)
        remove(desk.slot.folder / ".cuggino")
        record = read_record(desk.slot)
        if record is not None:  # its work is saved, or belongs to another worker by now
            write_record(desk.slot, replace(record, ready=False))
