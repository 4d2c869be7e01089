"""Landing: candidates are merged, checked and only then part of the trunk, one after the other."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Literal

from reactivex import Observable

from cuggino.errors import ConfigError, ProcessError, StorageError
from cuggino.events import (
    WatchCandidate,
    WatchFollowDelayed,
    WatchFollowHealed,
    WatchLanded,
    WatchLanding,
    WatchTrunkMoved,
    WatchWorkKept,
)
from cuggino.git import Git, failed, remove_stale_locks
from cuggino.operators import Flow, ask, emit, flow, forward
from cuggino.stages.acts import act
from cuggino.stages.slots.branches import (
    builds_on_branch,
    forget_merged,
    remember_branch,
    with_branches,
)
from cuggino.stages.slots.checking import (
    ITEM,
    Gate,
    Red,
    branch_names,
    check_candidate,
    landing_message,
    one_line,
)
from cuggino.stages.slots.following import changes_of_user, delayed, follow_branch
from cuggino.stages.slots.gate_tree import EPOCH, HANDED, GateTree, Merged, NotMerged
from cuggino.stages.slots.healing import Locked, heal
from cuggino.stages.slots.position import (
    AGAIN_FROM,
    AGAIN_TO,
    Place,
    Position,
    commit_named,
    contains,
    followed_ref,
    locks_of_refs,
    move_refs,
    old_trunk_ref,
    position,
)
from cuggino.stages.slots.refs import KEPT, TRUNK, candidate_ref, kept_ref, kept_refs

LandOn = Literal["follow", "branch"]
"""The destination of items: the user's branch, or a separate branch for each."""
LandAs = Literal["merge", "commit", "commits"]
"""How work becomes part of the trunk: merged, as a single commit, or as the commits that it is if
nothing else has landed, else merged."""

_CANDIDATE = "Candidate"
"""The trailer that names the candidate if it is not a parent of the commit."""
_TRIES = 5
"""Maximum attempts at a landing, if another process moves the trunk during each."""


class Trunk:
    """The trunk of a project: everything that has landed, after passing the gate.

    The trunk is the commit at `refs/cuggino/trunk`. `land` merges a candidate into it in the tree
    of the `gate`, runs the setup and check commands there, and moves the trunk to exactly the
    commit that was checked. `follow` moves the user's branch forward to the trunk. All state is in
    refs, and each step can be repeated: `open` repairs the state that a killed process has left.

    The user may change their branch in any way. Commits that they add become part of the trunk.
    When they rewrite it, what they removed stays removed, work that had landed but not reached the
    branch lands again, and the old trunk is kept.

    With `land_on="branch"` the trunk is the user's branch, which is never moved, and each item
    lands on a separate branch. An item that follows others begins with their branches.

    Merges are signed like the user's commits. Hooks do not run when the user's branch follows.

    Use one `Trunk` per project, and one of its streams at a time: their events must not interleave.
    """

    def __init__(
        self, gate: Gate, *, land_on: LandOn = "follow", land_as: LandAs = "merge"
    ) -> None:
        self._gate = gate
        self._land_on = land_on
        self._land_as = land_as
        self._branch: str | None = None
        """The branch that follows, once that is known."""
        self._refused: tuple[tuple[str, str], WatchFollowDelayed] | None = None
        """Commits of the user's branch that could not be merged, with the trunk at that time."""

    def open(self) -> Observable[Any]:
        """Heal what a killed process has left, start or adopt the trunk, and let the branch follow.

        Emits `WatchFollowHealed` and `WatchTrunkMoved` if there is anything to report, and what
        `follow` emits.

        Errors: `ConfigError` without a repository or a commit, or if the gate's folder is not a
        gate tree of this project; `ProcessError` and `StorageError` if it cannot be created.
        """
        return flow(self._open)

    def head(self, after: Collection[str] = ()) -> Observable[str]:
        """Emit the commit on which attempts build: the trunk, or where `open` would begin.

        It has the work of the items `after`, which have landed: existing branches of these items
        are merged into it, unless they are part of the trunk.

        Errors: `ConfigError` without a repository or a commit, `ProcessError` if such branches
        conflict.
        """
        return flow(lambda: self._head(after))

    def land(
        self, candidate: WatchCandidate, *, title: str = "", returns: int = 0
    ) -> Observable[Any]:
        """Merge the candidate, check it, and move the trunk to the commit that passed.

        Emits `WatchLanding`, the events of the commands, possibly `WatchTrunkMoved`, and last
        `WatchLanded` or `WatchSentBack`. `title` is the subject of the merge,
        and `returns` how often the item was sent back before. A candidate that has landed already,
        before a kill, is reported as it was then. The ref of a candidate that has landed is
        removed. The user's branch does not follow yet.

        Errors: `ProcessError` if git fails for a reason unrelated to the candidate, such as a full
        disk or a key that cannot sign, `StorageError` if the gate tree cannot be written. The
        candidate can be landed again.
        """
        return flow(lambda: self._land(candidate, title, returns))

    def follow(self) -> Observable[Any]:
        """Move the user's branch to the trunk; emits `WatchFollowed` or `WatchFollowDelayed`.

        Emits nothing if it is up to date. Commits that the user has made on the branch are taken
        first: merged and checked like a candidate if both have moved. A branch that cannot follow
        is reported each time, also if git fails; try again when something has changed.

        Errors: `ConfigError` if another watch has taken the trunk over.
        """
        return flow(self._follow)

    def changed(
        self, delayed: WatchFollowDelayed, changes: Callable[[Path], Observable[object]]
    ) -> Observable[object]:
        """Emit when the user has changed something, and their branch may follow by now.

        `changes` watches a folder, as `folder_changes`. Never completes.
        """

        def story() -> Flow[None]:
            place, _ = yield from self._gate.located()
            yield from forward(changes_of_user(place, delayed, changes))

        return flow(story)

    # -- open

    def _open(self) -> Flow[None]:
        place, gate = yield from self._gate.located()
        now = _with_head((yield from position(place)))
        self._branch = None
        yield from gate.make()
        locks = [lock for lock in locks_of_refs(place, now.branch) if os.path.lexists(lock)]
        if locks:
            yield from ask(act(lambda: remove_stale_locks(locks, place.git.cwd, since=EPOCH)))
        yield from self._heal(place, now)
        if not now.trunk or not now.followed:
            yield from self._start(place, now)
        elif now.at and now.at != now.branch:
            yield from self._change_branch(place, now)
        yield from self._follow()
        yield from forget_merged(place, (yield from self._trunk(place)))

    def _start(self, place: Place, now: Position) -> Flow[None]:
        """Start the trunk at HEAD; an existing trunk of unknown origin is kept."""
        commands = [f"update {TRUNK} {now.head}", f"update {followed_ref(now.at)} {now.head}"]
        if now.trunk and now.trunk != now.head:
            commands.append(f"update {old_trunk_ref(now.trunk)} {now.trunk}")
        yield from self._move(place, *commands)

    def _change_branch(self, place: Place, now: Position) -> Flow[None]:
        """Switch to the branch that is checked out now, after the old one has followed."""
        git = place.git
        if now.branch and self._land_on == "follow":
            if now.tip not in ("", now.trunk) and (yield from contains(now.trunk, now.tip, git)):
                yield from follow_branch(place, now)
            now = yield from position(place)
        if (yield from self._is_renamed(place, now)):
            return
        commands = [
            f"update {TRUNK} {now.head} {now.trunk}",
            f"delete {followed_ref(now.branch)}",
            f"update {followed_ref(now.at)} {now.head}",
        ]
        was = f"{now.branch or 'no branch'} was checked out before, and {now.at} is now"
        is_part = now.tip and (yield from contains(now.tip, now.trunk, git))
        if not is_part and not (yield from contains(now.head, now.trunk, git)):
            kept = old_trunk_ref(now.trunk)
            commands.append(f"update {kept} {now.trunk}")
            was += f"; what has landed there is kept as {kept}"
        yield from self._move(place, *commands)
        if now.head != now.trunk:
            yield from emit(WatchTrunkMoved(commit=now.head, was=now.trunk, reason=was))

    def _is_renamed(self, place: Place, now: Position) -> Flow[bool]:
        """Let the branch at HEAD follow if the old one is gone and this one has its commits."""
        if now.tip and now.branch:
            return False
        has_followed = yield from contains(now.head, now.followed, place.git)
        if not (has_followed and (yield from contains(now.trunk, now.head, place.git))):
            return False
        followed = f"update {followed_ref(now.at)} {now.followed}"
        yield from self._move(place, f"delete {followed_ref(now.branch)}", followed)
        return True

    def _heal(self, place: Place, now: Position) -> Flow[Locked | None]:
        healed = yield from heal(place, now)
        if isinstance(healed, WatchFollowHealed):
            yield from emit(healed)
            return None
        return healed

    def _head(self, after: Collection[str]) -> Flow[None]:
        place, _ = yield from self._gate.located()
        commit = yield from self._start_of(place, _with_head((yield from position(place))))
        if self._land_on == "branch" and after:
            commit = yield from with_branches(place, commit, after)
        yield from emit(commit)

    def _start_of(self, place: Place, now: Position) -> Flow[str]:
        is_opened = self._branch is not None
        if not now.trunk or not now.followed or (not is_opened and now.at not in ("", now.branch)):
            return now.head
        has_moved = now.tip not in ("", now.trunk)
        if has_moved and (yield from self._goes_on_at_tip(place, now)):
            return now.tip
        return now.trunk

    def _goes_on_at_tip(self, place: Place, now: Position) -> Flow[bool]:
        """Return whether the trunk moves to the user's branch, which has it or was rewritten."""
        if self._land_on == "branch" or (yield from contains(now.tip, now.trunk, place.git)):
            return True
        return not (yield from contains(now.tip, now.followed, place.git))

    def _trunk(self, place: Place) -> Flow[str]:
        return (yield from place.git.must("rev-parse", "--verify", TRUNK)).text

    def _move(self, place: Place, *commands: str, why: str = "cuggino") -> Flow[None]:
        moved = yield from move_refs(*commands, git=place.git, why=why)
        if moved.code:
            raise failed(("update-ref",), moved.code, moved.words)

    # -- follow

    def _follow(self) -> Flow[None]:
        place, _ = yield from self._gate.located()
        try:
            yield from self._let_follow(place)
        except (ProcessError, StorageError) as error:
            now = yield from position(place)
            yield from emit(delayed(now, error.message))

    def _let_follow(self, place: Place) -> Flow[None]:
        now = yield from position(place)
        if now.moving is not None:
            if locked := (yield from self._heal(place, now)):
                yield from emit(delayed(now, locked.reason))
                return
            now = yield from position(place)
        now, refused = yield from self._catch_up(place, now)
        if self._land_on == "branch":
            return
        if refused is not None:
            yield from emit(refused)
        elif not now.branch:
            if now.trunk != now.head:
                yield from emit(delayed(now, "HEAD is detached, and no branch follows"))
        elif not now.tip:
            yield from emit(delayed(now, f"the branch {now.branch} is gone"))
        elif now.tip != now.trunk:
            yield from follow_branch(place, now)
        elif now.followed != now.tip:
            yield from self._move(place, f"update {followed_ref(now.branch)} {now.tip}")

    def _catch_up(
        self, place: Place, now: Position
    ) -> Flow[tuple[Position, WatchFollowDelayed | None]]:
        """Take over the user's changes to the branch; return why that is not possible yet."""
        git = place.git
        if self._branch is not None and self._branch != now.branch:
            raise ConfigError(
                f"{TRUNK} belongs to {now.branch or 'a detached HEAD'} by now: another watch with "
                "slots has started in a work tree of this repository",
                hint="run one such watch at a time in a repository and its linked work trees",
            )
        if now.again is not None:
            yield from self._land_again(place, now)
            now = yield from position(place)
        if not now.trunk or not now.followed:
            yield from self._start(place, now)
            now = yield from position(place)
            self._branch = now.branch
            return now, None
        is_elsewhere = now.at and now.at != now.branch and not now.tip
        if is_elsewhere and (yield from self._is_renamed(place, now)):
            now = yield from position(place)
        self._branch = now.branch
        if not now.branch or now.tip in ("", now.trunk):
            return now, None
        refused = None
        if self._land_on == "branch":
            yield from self._adopt(place, now, f"{now.branch} has moved")
        elif not (yield from contains(now.tip, now.followed, git)):
            yield from self._rewritten(place, now)
        elif (yield from contains(now.trunk, now.tip, git)):
            return now, None
        elif (yield from contains(now.tip, now.trunk, git)):
            yield from self._adopt(place, now, f"commits were added to {now.branch}")
        else:
            refused = yield from self._merge_commits(place, now)
        return (yield from position(place)), refused

    def _adopt(self, place: Place, now: Position, reason: str) -> Flow[None]:
        followed = f"update {followed_ref(now.branch)} {now.tip}"
        yield from self._move(place, f"update {TRUNK} {now.tip} {now.trunk}", followed)
        yield from emit(WatchTrunkMoved(commit=now.tip, was=now.trunk, reason=reason))

    def _merge_commits(self, place: Place, now: Position) -> Flow[WatchFollowDelayed | None]:
        """Merge commits of the user into what has landed meanwhile, through the gate."""
        if self._refused is not None and self._refused[0] == (now.tip, now.trunk):
            return self._refused[1]
        _, gate = yield from self._gate.located()
        yield from gate.take(now.trunk)
        merged = yield from gate.merge(now.tip, f"Merge branch '{now.branch}'")
        if isinstance(merged, NotMerged):
            reason = f"commits on {now.branch} conflict with what has landed: merge {TRUNK}"
            return self._refuse(now, reason, merged.paths)
        if red := (yield from self._gate.test(merged, 1)):
            what = "setup" if red.reason == "setup" else "check"
            reason = f"the {what} fails on {now.branch} merged with what has landed"
            return self._refuse(now, reason, red.paths)
        yield from gate.hand_over()
        yield from self._move(
            place, f"update {TRUNK} {merged.commit} {now.trunk}", f"delete {HANDED}"
        )
        reason = f"commits were added to {now.branch}, and merged"
        yield from emit(WatchTrunkMoved(commit=merged.commit, was=now.trunk, reason=reason))
        return None

    def _refuse(self, now: Position, reason: str, paths: tuple[str, ...]) -> WatchFollowDelayed:
        refused = delayed(now, reason, paths)
        self._refused = (now.tip, now.trunk), refused
        return refused

    def _rewritten(self, place: Place, now: Position) -> Flow[None]:
        """Make a rewritten branch the trunk, keep the old trunk, and land its other work again."""
        kept = old_trunk_ref(now.trunk)
        yield from self._move(
            place,
            f"update {TRUNK} {now.tip} {now.trunk}",
            f"update {followed_ref(now.branch)} {now.tip}",
            f"update {kept} {now.trunk}",
            f"update {AGAIN_FROM} {now.followed}",
            f"update {AGAIN_TO} {now.trunk}",
        )
        reason = f"{now.branch} was rewritten; the trunk before is kept as {kept}"
        yield from emit(WatchTrunkMoved(commit=now.tip, was=now.trunk, reason=reason))
        yield from self._land_again(place, (yield from position(place)))

    def _land_again(self, place: Place, now: Position) -> Flow[None]:
        """Land again what had landed, but not reached the branch, before it was rewritten."""
        assert now.again is not None
        _, gate = yield from self._gate.located()
        after, last = now.again
        words = ("--first-parent", "--reverse", f"{after}..{last}")
        for commit in (yield from place.git.must("rev-list", *words)).text.split():
            message = (yield from place.git.must("log", "-1", "--format=%B", commit)).text
            item = _trailer(message, ITEM)
            moved = f"update {AGAIN_FROM} {commit}"
            if not item:  # commits of the user, who has rewritten them
                yield from self._move(place, moved)
                continue
            trunk = yield from self._trunk(place)
            before = yield from gate.take(trunk)
            picked = yield from gate.pick(commit, f"{commit}^1", message)
            red: Red | NotMerged | None = None
            if isinstance(picked, NotMerged):
                red = picked
            elif picked.tree != before.tree:
                red = yield from self._gate.test(picked, 1)
            if red is not None:
                ref = yield from _free_ref(item, place.git)
                yield from self._move(place, f"update {ref} {commit}", moved)
                why = "conflict" if isinstance(red, NotMerged) else red.reason
                reason = f"had landed, and cannot land again after the rewrite: {why}"
                yield from emit(WatchWorkKept(ref=ref, slot=0, filename=item, reason=reason))
            elif isinstance(picked, Merged) and picked.tree != before.tree:
                yield from gate.hand_over()
                yield from self._move(
                    place, f"update {TRUNK} {picked.commit} {trunk}", moved, f"delete {HANDED}"
                )
                reason = f"{item} has landed again"
                yield from emit(WatchTrunkMoved(commit=picked.commit, was=trunk, reason=reason))
            else:
                yield from self._move(place, moved)
        yield from self._move(place, f"delete {AGAIN_FROM}", f"delete {AGAIN_TO}")

    # -- land

    def _land(self, candidate: WatchCandidate, title: str, returns: int) -> Flow[None]:
        place, gate = yield from self._gate.located()
        commit, filename = candidate.commit, candidate.filename
        is_announced = False
        for _ in range(_TRIES):
            now, _ = yield from self._catch_up(place, (yield from position(place)))
            trunk = now.trunk
            if not is_announced:
                yield from emit(
                    WatchLanding(filename=filename, commit=commit, trunk=trunk, returns=returns)
                )
                is_announced = True
            landed = yield from self._landed_before(place, candidate, trunk)
            if landed is None:
                yield from check_candidate(candidate, place)
                merged, red = yield from self._merge(place, gate, candidate, trunk, title)
                if red is not None:
                    yield from emit(red.sent_back(filename, returns))
                    return
                landed = yield from self._place(place, candidate, trunk, merged)
            if landed is not None:
                if landed.branch is not None:
                    yield from remember_branch(place, filename, landed.branch)
                ref = candidate_ref(filename)
                yield from move_refs(f"delete {ref} {commit}", git=place.git)
                yield from emit(landed)
                return
        raise ProcessError("git", f"gave up: another program keeps moving {TRUNK}")

    def _merge(
        self, place: Place, gate: GateTree, candidate: WatchCandidate, trunk: str, title: str
    ) -> Flow[tuple[Merged | None, Red | None]]:
        """Merge and check; the result is None if there is nothing to land."""
        commit = candidate.commit
        message = landing_message(candidate.filename, title)
        before = yield from gate.take(trunk)
        base = yield from self._foreign_base(place, candidate, trunk)
        if base is None and self._land_as == "commit":
            base = candidate.base
        if base is None:
            only = self._land_on == "branch" or self._land_as == "commits"
            merged = yield from gate.merge(commit, message, only=only)
        else:
            merged = yield from gate.pick(commit, base, f"{message}{_CANDIDATE}: {commit}\n")
        if isinstance(merged, NotMerged):
            return None, Red.of(merged)
        if merged.tree == before.tree:
            return None, None
        red = yield from self._gate.test(merged, candidate.attempt)
        if red is None:
            yield from gate.hand_over()
        return merged, red

    def _foreign_base(
        self, place: Place, candidate: WatchCandidate, trunk: str
    ) -> Flow[str | None]:
        """Return the commit on which the work builds, if the trunk must not get its history.

        Merging work that builds on commits that the user has removed would bring them back.
        """
        git = place.git
        base = yield from commit_named(candidate.base, git)
        is_apart = self._land_on == "branch" and base
        if is_apart and (yield from builds_on_branch(place, base, trunk)):
            return None
        if base and not (yield from contains(trunk, base, git)):
            return base
        listed = yield from git.must("for-each-ref", "--format=%(objectname)", f"{KEPT}/trunk")
        for old in listed.text.split():
            said = yield from git.run("merge-base", candidate.commit, old)
            if said.code == 0 and not (yield from contains(trunk, said.text, git)):
                return said.text
        return None

    def _landed_before(
        self, place: Place, candidate: WatchCandidate, trunk: str
    ) -> Flow[WatchLanded | None]:
        """Return the landing of this candidate by an earlier process, if there was one."""
        base, commit = candidate.base, candidate.commit
        if self._land_on == "branch":
            return (yield from self._branch_of(place, candidate, trunk))
        if base == trunk or not (yield from commit_named(base, place.git)):
            return None
        words = ("--first-parent", "-z", "--format=%H %P%n%B", f"{base}..{trunk}", "--")
        for entry in (yield from place.git.must("log", *words)).fields:
            head, _, message = entry.partition("\n")
            made, *parents = head.split()
            is_it = commit in parents[1:] or _trailer(message, _CANDIDATE) == commit
            if is_it and _trailer(message, ITEM) == one_line(candidate.filename):
                return WatchLanded(filename=candidate.filename, commit=made, trunk_was=parents[0])
        return None

    def _branch_of(
        self, place: Place, candidate: WatchCandidate, trunk: str
    ) -> Flow[WatchLanded | None]:
        listed = yield from place.git.must(
            *("for-each-ref", "--format=%(refname)", f"--contains={candidate.commit}"),
            *(f"refs/heads/{name}" for name in branch_names(candidate.filename)[:2]),
        )
        for ref in listed.text.split():
            commit = yield from commit_named(ref, place.git)
            return WatchLanded(
                filename=candidate.filename,
                commit=commit,
                trunk_was=trunk,
                branch=ref.removeprefix("refs/heads/"),
            )
        return None

    def _place(
        self, place: Place, candidate: WatchCandidate, trunk: str, merged: Merged | None
    ) -> Flow[WatchLanded | None]:
        """Move the trunk, or make the item's branch; None if the trunk has moved meanwhile."""
        filename = candidate.filename
        if merged is None:
            return WatchLanded(filename=filename, commit=trunk, trunk_was=trunk, nothing=True)
        why = f"cuggino: land {one_line(filename)}"
        if self._land_on == "branch":
            branch = yield from self._make_branch(place, candidate, merged.commit, why)
            return WatchLanded(
                filename=filename, commit=merged.commit, trunk_was=trunk, branch=branch
            )
        moved = yield from move_refs(
            f"update {TRUNK} {merged.commit} {trunk}", f"delete {HANDED}", git=place.git, why=why
        )
        if moved.code:
            if (yield from self._trunk(place)) == trunk:
                raise failed(("update-ref",), moved.code, moved.words)
            return None
        return WatchLanded(filename=filename, commit=merged.commit, trunk_was=trunk)

    def _make_branch(
        self, place: Place, candidate: WatchCandidate, commit: str, why: str
    ) -> Flow[str]:
        """Create the branch unless it exists; an existing one belongs to the user."""
        moved = None
        for name in branch_names(candidate.filename):
            ref = f"refs/heads/{name}"
            moved = yield from move_refs(
                f"create {ref} {commit}", f"delete {HANDED}", git=place.git, why=why
            )
            if moved.code == 0:
                return name
        assert moved is not None
        raise failed(("update-ref",), moved.code, moved.words)


def _free_ref(item: str, git: Git) -> Flow[str]:
    """Return the next ref for kept work on an item."""
    listed = yield from git.must("for-each-ref", "--format=%(refname)", kept_refs(item))
    taken = {int(name.rpartition("/")[2]) for name in listed.text.split()}
    return kept_ref(item, max(taken, default=0) + 1)


def _with_head(now: Position) -> Position:
    """Return the position if HEAD has a commit.

    Raises:
        ConfigError: it has none.
    """
    if not now.head:
        raise ConfigError(
            "the repository has no commit to build on",
            hint='commit what is there, or run `git commit --allow-empty -m "Start"`',
        )
    return now


def _trailer(message: str, name: str) -> str:
    """Return the value of a trailer of our own, "" without it."""
    begin = f"{name}: "
    lines = message.rstrip().split("\n")
    return next((line.removeprefix(begin) for line in lines[::-1] if line.startswith(begin)), "")
