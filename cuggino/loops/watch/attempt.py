"""One attempt of a backlog item: the coding loop in the folder of a slot, and its candidate."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import methodcaller
from pathlib import Path
from typing import NamedTuple, Protocol

from reactivex import Observable, operators as ops

from cuggino.errors import RunNotResumable
from cuggino.events import (
    LoopApproved,
    LoopMaxIterations,
    WatchEvent,
    WatchSentBack,
)
from cuggino.gate import GitWork
from cuggino.git import STATUS, Git, changed_files
from cuggino.loops.coding.options import LoopRunOptions
from cuggino.loops.coding.service import LoopService
from cuggino.loops.frame.resuming import latest_run_of, resumed_options
from cuggino.loops.watch.placement import Work
from cuggino.operators import Flow, ask, flow, forward
from cuggino.operators.on_loop import within_loop
from cuggino.sandbox import home_of, named_paths, top_of, views_of
from cuggino.stages import GitSnapshots, Moves, Services, act, go_on_merging, merge_under_way
from cuggino.stages.slots import Slot
from cuggino.storage import (
    AttemptRecord,
    JournalFile,
    Workspace,
    attempt_of,
)


class Prepare(Protocol):
    """Gives a slot a commit, or with `resume` unfinished work on an item, as `prepare_slot`."""

    def __call__(
        self, slot: Slot, *, base: str, item: str, resume: bool = False
    ) -> Observable[WatchEvent]: ...


class Publish(Protocol):
    """Makes the candidate of the work in a slot, as `publish_candidate`."""

    def __call__(
        self, slot: Slot, *, item: str, base: str, attempt: int, approved: bool
    ) -> Observable[WatchEvent]: ...


def attempt(
    services: Services,
    work: Work,
    slot: Slot,
    *,
    prepare: Prepare,
    publish: Publish,
    loop: LoopService | None = None,
) -> Observable[WatchEvent]:
    """Work on a backlog item in a slot. Cold.

    ::

        [WatchWorkKept] WatchSlotPrepared [coding loop] WatchCandidate|

    `services` are those of the project, whose `loop` runs in the slot (`LoopService.at`). Journal,
    backlog, issues, quota, ledger and control are the project's, the rest is the slot's. Ends with
    `WatchCandidate`, or with the `LoopTerminalEvent` of a run without a result. The candidate of a
    run whose iterations are used up is not `approved`. Errors are those of the coding loop and of
    git.

    A `returned` item begins at its candidate, with the trunk merged into it: after a conflict it is
    reviewed, otherwise planned again, with the output of the check; by one agent at a time, also if
    its work was chosen among several attempts.

    An unfinished run of the item is resumed, and a run that ended without a result is followed by
    another one on its work, which the slot gets also from another slot. A run whose process ended
    before its candidate was published is not repeated.
    """
    story = _Attempt(services, work, slot, prepare, publish, loop or LoopService(services))
    return flow(story.run).pipe(ops.map(methodcaller("of_item", work.name)))


def slot_services(services: Services, options: LoopRunOptions) -> Services:
    """Return the services of the slot whose folder is `options.cwd`, of those of its project.

    A custom repository that cannot be opened in another folder (`Moves`) stays as it is.
    """
    desk = services.workspace.desk(options.cwd)
    repository, snapshots, work = services.repository, services.snapshots, services.work
    if isinstance(repository, Moves):
        repository = repository.at(options.cwd, views=views_of(options))
    if isinstance(snapshots, GitSnapshots):
        snapshots = snapshots.at(options.cwd, desk.snapshots, views=views_of(options))
    if isinstance(work, GitWork):
        work = work.at(options.cwd, desk.snapshots, views=views_of(options))
    return replace(services, workspace=desk, repository=repository, snapshots=snapshots, work=work)


def recorded_slots(home: Workspace, slots: Sequence[Slot]) -> dict[str, int]:
    """Return the slot of each item whose attempt was the last one there, by name and digest.

    An unfinished attempt is best resumed there.
    """
    found = {slot.number: attempt_of(home.desk(slot.folder)).readable() for slot in slots}
    return {record.item: number for number, record in found.items() if record is not None}


class _Found(NamedTuple):
    """The remains of an earlier attempt at an item, by this or another process."""

    folder: Path
    record: AttemptRecord
    run: JournalFile | None
    """The run of that attempt, if it came to one."""


class _Attempt:
    def __init__(
        self,
        services: Services,
        work: Work,
        slot: Slot,
        prepare: Prepare,
        publish: Publish,
        loop: LoopService,
    ) -> None:
        assert work.options.item is not None
        self._item = work.options.item
        self._work = work
        self._slot = slot
        self._prepare = prepare
        self._publish = publish
        self._options = options_in(slot, work.options)
        self._services = slot_services(services, self._options)
        self._loop = loop.at(self._services)
        self._home = services.workspace
        self._desk = self._services.workspace

    def run(self) -> Flow[None]:
        found = yield from ask(act(self._find))
        begins = found is None or (self._work.returned and not self._is_under_way(found))
        if found is None or begins or (yield from self._left_nothing(found)):
            record, last = yield from self._begun()
        elif self._is_done(found):
            record = found.record
            if found.folder != self._slot.folder:
                record = yield from self._taken_over(found)
            is_approved = found.run is not None and found.run.state == "approved"
            yield from self._published(record, approved=is_approved)
            return
        else:
            record, last = yield from self._gone_on(found)
        if isinstance(last, LoopApproved | LoopMaxIterations):
            yield from self._published(record, approved=isinstance(last, LoopApproved))

    def _published(self, record: AttemptRecord, *, approved: bool) -> Flow[None]:
        """Make the candidate. When it has been emitted, the slot has nothing left to report."""
        work = self._work
        published = self._publish(
            self._slot, item=work.name, base=record.base, attempt=work.number, approved=approved
        )
        yield from forward(published)
        yield from ask(act(lambda: self._note(record, published=True)))

    def _find(self) -> _Found | None:
        """Return the remains of an earlier attempt at the item, in this slot or another one."""
        latest = latest_run_of(self._home, self._item, in_slot=True)
        found: list[_Found] = []
        for folder in self._folders():
            desk = self._home.desk(folder)
            record = attempt_of(desk).readable()
            if record is not None and (record.item != self._item or record.published):
                record = None
            if latest is not None and latest.resumable and latest.run_id in desk.sessions():
                # Without a record, it was killed while its slot was being taken for another item.
                number = self._work.number
                its = record or AttemptRecord(item=self._item, number=number, base="", after="")
                return _Found(folder, its, latest)
            if record is not None:
                is_new = latest is not None and latest.run_id > record.after
                found.append(_Found(folder, record, latest if is_new else None))
        # Without a base, it may be what was copied when another item had the slot.
        return max(found, key=lambda one: (one.record.after, one.record.base != ""), default=None)

    def _folders(self) -> Iterator[Path]:
        """Yield the folder of the slot, then those of all others, also of unused ones."""
        slot = self._slot
        yield slot.folder
        within = slot.folder.relative_to(slot.root)
        for root in sorted(slot.root.parent.glob("slot-*")):
            if root != slot.root and (root / within).is_dir():
                yield root / within

    def _is_under_way(self, found: _Found) -> bool:
        return (found.run is not None and found.run.resumable) or self._is_done(found)

    def _is_done(self, found: _Found) -> bool:
        """Return whether only the candidate is missing."""
        run = found.run
        is_same = found.record.number == self._work.number
        states = ("approved", "max_iterations")
        return is_same and run is not None and not run.resumable and run.state in states

    def _left_nothing(self, found: _Found) -> Flow[bool]:
        """Return whether the run has ended without work, so that nothing keeps its old base.

        It may have asked a question, and others have landed before the answer. A slot of another
        machine counts as one with work.
        """
        base, run = found.record.base, found.run
        if run is None or run.resumable or not base or self._is_done(found):
            return False
        if not os.path.lexists(found.folder / ".git"):
            return False
        git = Git(cwd=found.folder, views=views_of(self._options))
        head = yield from git.must("rev-parse", "HEAD")
        status = yield from git.must(*STATUS)
        return head.text.strip() == base and not changed_files(status.fields)

    def _begun(self) -> Flow[tuple[AttemptRecord, object]]:
        """Prepare the slot, and run the loop from the beginning."""
        work, returned = self._work, self._work.returned
        after = (yield from ask(act(self._latest))) or ""
        record = AttemptRecord(item=self._item, number=work.number, base=work.base, after=after)
        yield from ask(act(attempt_of(self._desk).remove))
        start = work.base if returned is None else returned.candidate.commit
        yield from forward(self._prepare(self._slot, base=start, item=work.name))
        yield from ask(act(lambda: self._note(record)))
        options = self._options
        if returned is not None:
            review = return_review(returned.sent_back) or options.review
            options = options.model_copy(
                update={"merge": work.base, "review": review, "attempts": 1}
            )
        return record, (yield from self._run(options))

    def _gone_on(self, found: _Found) -> Flow[tuple[AttemptRecord, object]]:
        """Resume an unfinished run, or run the loop again on the work of one that has ended."""
        record, run = (yield from self._taken_over(found)), found.run
        if run is not None and run.resumable and run.run_id in self._desk.sessions():
            with suppress(RunNotResumable):  # written by another version: start over
                options = resumed_options(self._options, run.started)
                return record, (yield from self._run(options, run))
        after = (yield from ask(act(self._latest))) or ""
        yield from ask(act(lambda: self._note(record, after=after)))
        options = self._options.model_copy(update={"dirty": "commit"})
        return record, (yield from self._run(options))

    def _taken_over(self, found: _Found) -> Flow[AttemptRecord]:
        """Give the slot the work on the item, from where it is."""
        work = self._work
        record = found.record.model_copy(update={"number": work.number})
        other = None if found.folder == self._slot.folder else self._home.desk(found.folder)
        merging = merge_under_way(found.folder) if other is not None else None
        restored = self._prepare(self._slot, base=work.base, item=work.name, resume=True)
        last = yield from forward(restored)
        if not record.base:
            record = record.model_copy(update={"base": getattr(last, "base", work.base)})
        if other is not None:
            its = attempt_of(other).readable()
            is_taken = its is not None and its.item != self._item  # whose agent may be at work
            if found.run is not None:
                self._desk.take_session(other, found.run.run_id, copies=is_taken)
            if merging is not None:
                go_on_merging(self._slot.folder, merging)
        self._note(record)
        if other is not None and not is_taken:
            attempt_of(other).remove()
        return record

    def _note(self, record: AttemptRecord, **fields: object) -> None:
        attempt_of(self._desk).write(record.model_copy(update=fields))

    def _latest(self) -> str:
        """Return the id of the latest run of the item, or ""."""
        run = latest_run_of(self._home, self._item, in_slot=True)
        return "" if run is None else run.run_id

    def _run(self, options: LoopRunOptions, resume: JournalFile | None = None) -> Flow[object]:
        work = self._work
        run = self._loop.run(options, resume=resume, ledger=work.ledger, control=work.control)
        return (yield from forward(within_loop(run)))


def options_in(slot: Slot, options: LoopRunOptions) -> LoopRunOptions:
    """Return the options of a run in the slot, of those in its project, a slot or not."""
    return options.model_copy(
        update={
            "cwd": slot.folder,
            "slot": slot.number,
            "apart": (*options.apart, slot.root.parent, top_of(slot.project)),
            "sandbox_hide": in_slot_too(options.sandbox_hide, slot),
            "sandbox_show": in_slot_too(options.sandbox_show, slot),
            "env": {**options.env, **slot.env},
            "commit": True,
            "push": None,  # the slot has no remote
            "dirty": "keep",
        }
    )


def in_slot_too(paths: Sequence[str], slot: Slot) -> list[str]:
    """Return the paths of a setting, and for those in the project also their place in the slot."""
    home = home_of(os.environ)
    named = (path for name in paths for path in named_paths([name], home))
    top = top_of(slot.project)
    inside = [path.relative_to(top) for path in named if path.is_relative_to(top) and path != top]
    return [*paths, *(str(slot.root / path) for path in inside)]


def return_review(sent_back: WatchSentBack) -> str | None:
    """Return the review for the next planning agent; None after a conflict, which is resolved."""
    match sent_back.reason:
        case "conflict":
            return None
        case "changed-files":
            why = (
                "the check command changed files that git tracks, so what was checked is not what "
                f"was committed: {', '.join(f'`{path}`' for path in sent_back.paths)}. Commit them "
                "as the command leaves them, or keep the command from changing them."
            )
        case "ci":
            return _proposal_review("A job of it failed. Make it pass.", sent_back)
        case "review":
            return _proposal_review("A person asks for changes. Make them.", sent_back)
        case reason:
            why = f"the {reason} command failed. Make it pass."
    output = f" Its output was:\n\n{sent_back.output.strip()}" if sent_back.output.strip() else ""
    return (
        "The work was approved. It was then merged with what others had finished meanwhile, and "
        f"on the merged project {why} The project is now in that merged state: what others did "
        f"must keep working.{output}"
    )


def _proposal_review(what: str, sent_back: WatchSentBack) -> str:
    said = f"\n\n{sent_back.output.strip()}" if sent_back.output.strip() else ""
    return f"The work was approved, and proposed for landing. {what}{said}"
