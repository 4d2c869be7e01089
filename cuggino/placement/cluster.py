"""Attempts on the workers of a cluster: the placement of a watch, of several hands or attempts."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from reactivex import Observable, abc, defer, empty, operators as ops
from reactivex.disposable import Disposable

from cuggino.config import Config
from cuggino.domain import Budget, attempted_item, item_name
from cuggino.errors import (
    ClusterLost,
    ConfigError,
    CugginoError,
    PlaceGone,
    ProcessError,
    ProcessFailed,
    SessionError,
    StorageError,
    WorkspaceLocked,
)
from cuggino.events import (
    ControlEvent,
    WatchCandidate,
    WatchEvent,
    WatchLoopEvent,
    WatchSlotPrepared,
    WatchWorkers,
    WatchWorkKept,
    dump_event,
)
from cuggino.files import read_regular
from cuggino.git import Git, list_settings
from cuggino.loops import Placed, Services, Work, latest_run_of
from cuggino.operators import Flow, ask, emit, flow, forward, within_budget
from cuggino.operators.mapcat import mapcat
from cuggino.placement.assignment import Assignment, Named, below, carry
from cuggino.placement.dask import DaskLink
from cuggino.placement.dask.values import AttemptLost, Placed as Linked, PlaceGone as Gone
from cuggino.placement.limits import Limit, Window, limits_met
from cuggino.placement.mirror import RECORD, Kept
from cuggino.placement.seen import workers_seen
from cuggino.placement.wire import Failed, FileGone, FileGrown, Limits, decode, encode
from cuggino.runs import DIGESTED, DigestFold
from cuggino.sandbox import top_of, views_of
from cuggino.stages import act, budget_of, lane
from cuggino.stages.slots import (
    GIVEN,
    REFS,
    TRUNK,
    WORK,
    Attempted,
    candidate_ref,
    contains,
    given_ref,
    included_files,
    item_of,
    keep_pushed,
    kept_ref,
    known_refs,
    numbered,
    push_shared,
    remote_of,
    shared_refs,
    work_ref,
)
from cuggino.storage import JournalFile

TASK = "cuggino.placement.worker:work"
_SETTINGS = re.compile(
    r"(user|author|committer)\..+|i18n\..+|commit\.(cleanup|encoding)"
    r"|core\.(autocrlf|eol|safecrlf|whitespace|commentchar|precomposeunicode|longpaths)"
)
"""Git settings that change what a commit holds, and run no program."""


Offered: TypeAlias = Sequence[Mapping[str, float]]
"""The resources of each worker."""


def nothing_needed(_work: Work, _offered: Offered) -> Mapping[str, float]:
    """Return no needs: an attempt may go to any worker."""
    return {}


@dataclass(slots=True)
class _AtWork:
    """An attempt on a worker."""

    linked: Linked
    work: Work | None = None


class Cluster:
    """The workers of a Dask cluster as places.

    ::

        with DaskLink("tls://head:8786", security=security) as link:
            here = Cluster(runtime.services, runtime.config, link, cwd=runtime.cwd, slots=8)
            cuggino.run(runtime.watch(placement=here), print)

    Workers clone `remote`, a remote of the project's repository, and push their work only to refs
    below `refs` there, by default `refs/cuggino`. `needs` returns the resources that an attempt
    takes on its worker, given those of all workers. What agents such as `scripted:FILE` play is in
    `files`, by default the project.
    """

    def __init__(
        self,
        services: Services,
        config: Config,
        link: DaskLink,
        *,
        cwd: Path,
        slots: int,
        agent: str = "",
        remote: str = "origin",
        refs: str = REFS,
        files: Path | None = None,
        needs: Callable[[Work, Offered], Mapping[str, float]] = nothing_needed,
    ) -> None:
        self._services = services
        self._config = config
        self._link = link
        self._cwd = cwd.resolve()
        self._slots = slots
        self._agent = agent
        self._remote = remote
        self._refs = refs
        self._files = (files or cwd).resolve()
        self._needs = needs
        self._project = uuid.uuid5(uuid.NAMESPACE_URL, str(self._cwd)).hex[:12]
        self._is_leaving = False
        self._at_work: dict[str, _AtWork] = {}
        """By key."""
        self._attached: dict[str, str] = {}
        """Keys of attempts continued from an earlier process, by item."""
        self._endings: dict[str, Observable[None]] = {}
        """Wait for the ends of cancelled attempts, by the names of their items."""
        self._limits: dict[tuple[str, str], Limit] = {}
        """The usage limits that attempts have met, by account and agents."""
        self._windows: dict[tuple[str, str, str], Window] = {}
        """The usage windows that attempts know, by account, agent and name."""
        self._workers: WatchWorkers | None = None
        """The workers as the watch last saw them."""

    @property
    def slots(self) -> int:
        """Return the maximum number of concurrent attempts."""
        return self._slots

    @property
    def news(self) -> Observable[WatchEvent]:
        """Emit `WatchWorkers` whenever it differs from the last one of this watch."""

        def note(seen: WatchWorkers) -> None:
            self._workers = seen

        seen: Observable[WatchWorkers] = defer(
            lambda _: workers_seen(self._link, before=self._workers)
        )
        return seen.pipe(ops.do_action(note))

    def place(self, work: Work) -> Observable[Placed]:
        """Send the attempt to a worker with the needed resources; emits once one has begun it.

        Errors: `ConfigError` where no attempt is possible, `ProcessError` of git.
        """
        return flow(lambda: self._place(work))

    def events(self, placed: Placed) -> Observable[WatchEvent]:
        """Emit the events of the attempt, and store its journal and files as they arrive."""
        return flow(lambda: self._heard(placed))

    def cancel(self, placed: Placed) -> None:
        """End the attempt on its worker; after `leave`, let it continue."""
        at_work = self._at_work.pop(placed.key, None)
        if at_work is not None and not self._is_leaving:
            self._endings[item_name(placed.item)] = self._link.cancel(at_work.linked)

    def leave(self) -> None:
        """Let all attempts continue without this process; the link must be detached."""
        self._is_leaving = True

    def attach(self, is_wanted: Callable[[str], bool]) -> Observable[Sequence[Placed]]:
        """Emit the attempts placed by an earlier, detached client, and clean the remote."""
        return flow(partial(self._attach, is_wanted))

    def forget(self, items: Collection[str]) -> Observable[None]:
        """Remove the refs of items that have landed from the shared repository."""
        return flow(partial(self._forgotten, items))

    def keep(self, name: str, slot: int, *, base: str) -> Observable[Attempted]:
        """Fetch what the attempt has pushed last, and keep it; nothing of it stays elsewhere."""
        return flow(partial(self._kept, name, base))

    def gone(self, placed: Placed) -> Observable[PlaceGone]:
        """Emit when the worker or the scheduler is gone."""
        at_work = self._at_work.get(placed.key)
        if at_work is None:
            return empty()
        gone: Observable[Gone] = self._link.gone(at_work.linked)
        return gone.pipe(ops.map(_lost))

    # Placing.

    def _place(self, work: Work) -> Flow[None]:
        item = work.options.item or ""
        key = self._attached.pop(item, None)
        if key is not None and _parts(key).number == work.number:
            self._at_work[key].work = work
            linked = self._at_work[key].linked
        else:
            if key is not None:
                yield from self._ended(key)
            yield from self._end_others(work.name)
            key = self._new_key(work)
            assignment = yield from self._assignment(key, work)
            text = assignment.model_dump_json()
            try:
                workers = (yield from ask(self._link.workers())) or ()
                needs = self._needs(work, [worker.resources for worker in workers])
                found = yield from ask(self._link.place(key, text, TASK, needs=needs))
            except AttemptLost as error:
                raise _lost(error.gone) from error
            assert found is not None
            linked = found
            self._at_work[key] = _AtWork(linked, work)
        yield from emit(Placed(item=item, slot=work.slot, key=key, worker=linked.worker, work=work))

    def _end_others(self, name: str) -> Flow[None]:
        """End an earlier process's attempt at the item, such as one at another version of it."""
        for item, key in list(self._attached.items()):
            if item_name(item) == name:
                del self._attached[item]
                yield from self._ended(key)

    def _ended(self, key: str) -> Flow[None]:
        """End the attempt, and wait until its processes are gone."""
        yield from ask(self._link.cancel(self._at_work.pop(key).linked))

    def _new_key(self, work: Work) -> str:
        item = os.fsencode(work.options.item or "").hex()
        return f"{self._project}-{uuid.uuid4().hex[:12]}-{work.slot}-{work.number}-{item}"

    def _assignment(self, key: str, work: Work) -> Flow[Assignment]:
        cwd, workspace = self._cwd, self._services.workspace
        top = top_of(cwd)
        git = Git(cwd=top)
        remote = yield from remote_of(git, self._remote)
        yield from self._given(git, remote, work)
        here = yield from ask(lane())
        assert here is not None
        options, ledger = work.options, work.ledger
        latest = latest_run_of(workspace, options.item or "", in_slot=True)
        if ledger is not None and options.budget is not None:
            left = ledger.remaining_usd(Budget(cost_usd=options.budget)) or 0.01
            # A resumed run counts what it has spent so far, and so does the ledger.
            left += _spent(latest) if latest is not None and latest.resumable else 0.0
            options = options.model_copy(update={"budget": left})
        listed = yield from list_settings(git)
        included = yield from included_files(Git(cwd=cwd, views=views_of(self._config)))
        settings = [(one.name, one.text) for one in listed if _SETTINGS.fullmatch(one.name)]
        kept = Kept(workspace, work.name)
        exclude = _text(top / ".git" / "info" / "exclude")

        config = self._config.of_attempt(work.choice)
        agent = self._agent if config is self._config else ""
        of_agents = _files_of_agents(self._files, config, agent)

        def made() -> Assignment:
            state = [*below(workspace.prompts, "prompts")]
            state += kept.files(latest.run_id if latest is not None else None)
            place = cwd.relative_to(top).as_posix()
            ignored = (_pattern(f"{place}/{path}".removeprefix("./")) for path in included)
            return Assignment.of(
                config=config,
                options=options,
                key=key,
                item=options.item or "",
                slot=work.slot,
                number=work.number,
                base=work.base,
                remote=remote,
                refs=self._refs,
                within=place,
                project=top.name,
                agent=agent,
                settings=(*settings, ("commit.gpgsign", "false")),
                exclude=exclude + "".join(f"/{path}\n" for path in ignored),
                candidate=work.returned.candidate if work.returned else None,
                sent_back=work.returned.sent_back if work.returned else None,
                files=carry((*_of_project(cwd, options.specs_path, included), *of_agents)),
                state=carry(state),
                limits=self._limits_at(here.now),
                windows=tuple(self._windows.values()),
            )

        assignment = yield from ask(act(made))
        assert assignment is not None
        return assignment

    def _given(self, git: Git, remote: str, work: Work) -> Flow[None]:
        """Push the commits that the attempt begins with, to refs that no one else writes."""
        given = partial(given_ref, work.name, within=self._refs)
        specs = [f"+{work.base}:{given('base')}"]
        if work.returned is not None:
            specs.append(f"+{work.returned.candidate.commit}:{given('candidate')}")
        yield from push_shared(git, remote, *specs)

    # Receiving.

    def _heard(self, placed: Placed) -> Flow[None]:
        at_work = self._at_work[placed.key]
        work, kept = at_work.work, Kept(self._services.workspace, item_name(placed.item))
        candidates: list[WatchCandidate] = []

        def hear(text: str) -> Iterator[Any]:
            try:
                said = decode(text)
                match said:
                    case FileGrown(name) if name == RECORD and candidates:
                        pass  # that it is published is not true before it has been fetched
                    case FileGrown() | FileGone():
                        kept.apply(said)
                    case Failed(error):
                        raise _there(error, placed.worker or "")
                    case Limits() as limits:
                        self._met(placed.key, limits)
                    case WatchCandidate(filename=name) if name == item_name(placed.item):
                        candidates[:] = [said]
                    case WatchSlotPrepared(filename=name) if name == item_name(placed.item):
                        yield said.model_copy(update={"worker": placed.worker})
                    case WatchWorkKept():  # in its clone; here, `_fetched` keeps it
                        pass
                    case WatchLoopEvent():
                        raise ValueError(f"{said.tag} is not an event of this attempt")
                    case _:
                        yield said
            except ValueError as error:
                why = str(error).partition("\n")[0]
                message = f"the worker {placed.worker} has sent an invalid message: {why}"
                raise ProcessError("cuggino", message) from error

        told: Observable[WatchEvent] = self._link.events(at_work.linked).pipe(mapcat(hear))
        if work is not None and work.ledger is not None:
            options = work.options
            told = told.pipe(within_budget(budget_of(options), ledger=work.ledger))
        ordering: abc.DisposableBase = Disposable()
        if work is not None and work.control is not None:
            here = yield from ask(lane())
            orders = work.control.orders()
            ordering = orders.subscribe(partial(self._order, at_work), scheduler=here)
        try:
            yield from forward(told)
        except AttemptLost as error:
            raise _lost(error.gone) from error
        finally:
            ordering.dispose()
        for candidate in candidates:
            yield from self._fetched(candidate)
            yield from emit(candidate)
            kept.forget()  # the loop has the candidate by now

    def _order(self, at_work: _AtWork, command: ControlEvent) -> None:
        self._link.tell(at_work.linked, dump_event(command))

    def _limits_at(self, now: datetime) -> tuple[Limit, ...]:
        """Return the known usage limits in force."""
        known = {key: limit for key, limit in self._limits.items() if limit.until > now}
        for limit in limits_met(self._services.gate, self._services.agent, now):
            known.setdefault((limit.account, limit.agents), limit)
        return tuple(known.values())

    def _met(self, key: str, limits: Limits) -> None:
        """Send what one attempt knows to all others, and keep it for later attempts."""
        self._limits.update({(limit.account, limit.agents): limit for limit in limits.limits})
        self._windows.update(
            {(window.account, window.agent, window.window): window for window in limits.windows}
        )
        text = encode(limits)
        for other, at_work in self._at_work.items():
            if other != key:
                self._link.tell(at_work.linked, text)

    def _fetched(self, candidate: WatchCandidate) -> Flow[None]:
        """Fetch the candidate from the shared repository.

        Raises:
            ProcessError: it is not the candidate that the attempt reported.
        """
        name, git = candidate.filename, Git(cwd=top_of(self._cwd))
        ref, arrived = candidate_ref(name), work_ref(name, within=self._refs)
        remote = yield from remote_of(git, self._remote)
        yield from git.fetch(remote, f"+{arrived}:{arrived}")
        known = yield from known_refs(git)
        commit = (yield from git.must("rev-parse", "--verify", f"{arrived}^{{commit}}")).text
        if commit != candidate.commit:
            raise ProcessError(
                "git",
                f"{arrived} of the shared repository is not the candidate that the worker "
                "has named: another watch may work on the same item",
            )
        changes = [f"update {ref} {commit}", f"delete {arrived}"]
        earlier = known.get(ref)
        if earlier is not None and not (yield from contains(commit, earlier, git)):
            kept = kept_ref(name, max(numbered(known, name), default=0) + 1)
            changes.append(f"update {kept} {earlier}")
            yield from emit(
                WatchWorkKept(
                    ref=kept,
                    slot=candidate.slot,
                    filename=name,
                    reason="a candidate that another one replaces",
                )
            )
        stdin = "".join(f"{change}\n" for change in changes).encode()
        yield from git.must("update-ref", "--stdin", stdin=stdin)

    def _kept(self, name: str, base: str) -> Flow[None]:
        yield from self._end_others(name)
        if (ending := self._endings.pop(name, None)) is not None:
            yield from ask(ending)  # it pushes nothing any more
        work, given = work_ref(name, within=self._refs), given_ref(name, "", within=self._refs)
        shared = yield from self._shared()
        mine = [ref for ref in shared if ref == work or ref.startswith(given)]
        git = Git(cwd=top_of(self._cwd))
        pushed = work if work in mine else None
        if pushed is not None:
            yield from git.fetch((yield from remote_of(git, self._remote)), f"+{work}:{work}")
        yield from forward(keep_pushed(git, name, pushed, base=base))
        yield from self._unshared(mine)
        Kept(self._services.workspace, name).forget()

    # Attaching.

    def _attach(self, is_wanted: Callable[[str], bool]) -> Flow[None]:
        self._workers = None
        linked = []
        found: Observable[Linked] = self._link.attach(self._project)

        def note(one: Linked) -> tuple[()]:
            linked.append(one)
            return ()

        yield from forward(found.pipe(mapcat(note)))
        placed = []
        for one in linked:
            slot, _, item = _parts(one.key)
            self._at_work[one.key] = _AtWork(one)
            if item in self._attached or not is_wanted(item_name(item)):
                yield from self._ended(one.key)  # not needed any more
                continue
            self._attached[item] = one.key
            placed.append(Placed(item=item, slot=slot, key=one.key, worker=one.worker))
        yield from self._cleaned(is_wanted)
        yield from emit(placed)

    def _cleaned(self, is_wanted: Callable[[str], bool]) -> Flow[None]:
        """Remove the refs and files of items that have landed."""
        git, landed = Git(cwd=top_of(self._cwd)), []
        for ref, commit in (yield from self._shared()).items():
            if not is_wanted(item_of(ref)) and (yield from contains(TRUNK, commit, git)):
                landed.append(ref)
                Kept(self._services.workspace, item_of(ref)).forget()
        yield from self._unshared(landed)

    def _forgotten(self, items: Collection[str]) -> Flow[None]:
        refs = [(ref, item_of(ref)) for ref in (yield from self._shared())]
        landed = [ref for ref, item in refs if {item, attempted_item(item)} & {*items}]
        yield from self._unshared(landed)

    def _shared(self) -> Flow[Mapping[str, str]]:
        """Return the refs of items in the shared repository, with their commits."""
        git = Git(cwd=top_of(self._cwd))
        remote = yield from remote_of(git, self._remote)
        patterns = (f"{self._refs}/{folder}/*" for folder in (WORK, GIVEN))
        try:
            return (yield from shared_refs(git, remote, *patterns))
        except ProcessFailed as error:
            raise ConfigError(
                f"the shared repository cannot be read: {error.message}",
                hint=f"check `git ls-remote {self._remote}`; workers use it, too",
            ) from error

    def _unshared(self, refs: Sequence[str]) -> Flow[None]:
        """Remove refs from the shared repository."""
        if refs:
            git = Git(cwd=top_of(self._cwd))
            remote = yield from remote_of(git, self._remote)
            yield from push_shared(git, remote, *(f":{ref}" for ref in refs))


def _of_project(cwd: Path, specs: str, included: Sequence[str]) -> Iterator[Named]:
    """Yield project files that may not be in git."""
    folder = (cwd / specs).resolve()
    if not Path(specs).is_absolute() and folder.is_relative_to(cwd) and folder != cwd:
        place = Path(specs).as_posix()
        yield from below(folder, place) if folder.is_dir() else _file(folder, place)
    yield from _file(cwd / ".worktreeinclude", ".worktreeinclude")
    for path in included:
        yield Named(cwd / path, path)


def _files_of_agents(folder: Path, config: Config, agent: str) -> list[Named]:
    """Return the project files that agents such as `scripted:FILE` play."""
    named: list[str | None] = [agent, config.agent, *(one.agent for one in config.fallback)]
    for role in config.agents.values():
        named += [role.agent, *(one.agent for one in role.fallback or ())]
    found = {
        file
        for kind, _, file in (name.partition(":") for name in named if name)
        if kind in ("scripted", "replay")
    }
    inside = (file for file in sorted(found) if (folder / file).resolve().is_relative_to(folder))
    return [
        Named(folder / file, file)
        for file in inside
        if not Path(file).is_absolute() and (folder / file).is_file()
    ]


class _Parts(NamedTuple):
    """The parts of an attempt's key."""

    slot: int
    number: int
    item: str


def _parts(key: str) -> _Parts:
    _project, _unique, slot, number, item = key.split("-", 4)
    return _Parts(int(slot), int(number), os.fsdecode(bytes.fromhex(item)))


def _spent(run: JournalFile) -> float:
    return DigestFold(run.entries.only(DIGESTED)).state.cost_usd or 0.0


def _file(path: Path, place: str) -> Iterator[Named]:
    if path.is_file():
        yield Named(path, place)


def _pattern(path: str) -> str:
    """Return a `.gitignore` pattern that only this path matches."""
    return re.sub(r"([\\*?\[ ])", r"\\\1", path)


def _text(path: Path) -> str:
    try:
        return read_regular(path).decode("utf-8", "surrogateescape")
    except (OSError, ValueError):
        return ""


def _there(error: CugginoError, worker: str) -> CugginoError:
    """Return the error; a storage error of one worker must not affect other items."""
    if isinstance(error, SessionError) or not isinstance(error, StorageError | WorkspaceLocked):
        return error
    return ProcessError("cuggino", f"on the worker {worker}: {error.message}", hint=error.hint)


def _lost(gone: Gone) -> PlaceGone:
    """Return the loss of a worker as an error, after which another place can be used.

    Raises:
        ClusterLost: the scheduler is gone.
    """
    if gone.cause == "scheduler":
        raise ClusterLost(
            f"the cluster is lost: {gone.reason}",
            hint="what was landed or pushed is safe; continue when there is a cluster again",
        )
    return PlaceGone(gone.reason)
