"""The watch with slots, with real git and the scripted agent."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable
from reactivex.subject import Subject

import cuggino
from cuggino import Runtime, events as ev
from cuggino.errors import ConfigError, Interrupted, WorkspaceLocked
from cuggino.loops import Returned
from cuggino.processes.process_tree import Ladder, ProcessTree
from cuggino.stages.slots import TRUNK, candidate_ref
from cuggino.storage import Workspace, WorkspaceLock
from tests.git_project import isolate_git
from tests.limits import LIMIT
from tests.loops.slot_project import SlotProject
from tests.processes.subscribers import eventually

RESOLVE = """
if git rev-parse -q --verify MERGE_HEAD >/dev/null; then
    git checkout -q --theirs shared.txt
    echo {0} >>shared.txt
    git add shared.txt
else
    echo {0} >>shared.txt
fi
"""
"""Adds a line to a file that others change, too; keeps theirs after a conflict."""


LINGERS = """
import pathlib, signal, sys, time

place, name = pathlib.Path(sys.argv[1]), sys.argv[2]

def leave(number, frame):
    for asked in (signal.SIGINT, signal.SIGTERM):
        signal.signal(asked, signal.SIG_IGN)
    (place / f"{name}.asked").touch()
    while len([*place.glob("*.asked")]) < 4:
        time.sleep(0.01)
    (place / f"{name}.left").touch()
    sys.exit(1)

signal.signal(signal.SIGINT, leave)
signal.signal(signal.SIGTERM, leave)  # what the tool of an agent gets
(place / f"{name}.begun").touch()
time.sleep(600)
"""
"""Leaves on a signal as soon as the three others have been asked to, or is killed."""


@pytest.fixture(autouse=True)
def isolated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    isolate_git(monkeypatch, tmp_path / "home")


def patient(end: Callable[..., None]) -> Callable[..., None]:
    """Return the end of a process tree that gives a busy machine time before it kills."""

    def patient(tree: ProcessTree, ladder: Ladder, *pause: Callable[[float], object]) -> None:
        end(tree, tuple((sign, LIMIT) for sign, _ in ladder), *pause)

    return patient


def completed(events: Sequence[ev.Event]) -> list[str]:
    return sorted(e.filename for e in events if isinstance(e, ev.WatchItemCompleted))


CANDIDATE = ev.WatchCandidate(filename="1.md", slot=1, commit="1" * 40, base="1" * 40, attempt=1)


class TestHold:
    """One process at a time works in a workspace and lands in a repository."""

    def test_a_second_watch_in_a_linked_work_tree_is_refused(self, tmp_path: Path) -> None:
        """It would take the trunk away from the first one, whose items could not land."""
        project = SlotProject(tmp_path)
        linked = tmp_path / "linked"
        project.git.git("worktree", "add", "-q", str(linked))
        first = project.runtime()
        second = Runtime.live(cwd=linked, config=project.config, agent=first.agent)
        for event in cuggino.iterate(first.watch()):
            if isinstance(event, ev.WatchBacklogWaiting):
                with pytest.raises(WorkspaceLocked, match="is in use by process"):
                    next(cuggino.iterate(second.watch()))
                break
        assert isinstance(next(cuggino.iterate(second.watch())), ev.Event)

    @pytest.mark.parametrize(
        ("config", "begin"),
        [
            ({}, lambda runtime: runtime.watch()),
            ({"hands": 2}, lambda runtime: runtime.run(focus="Words")),
            ({"attempts": 2}, lambda runtime: runtime.run(focus="Words")),
            ({}, lambda runtime: runtime.land(CANDIDATE)),
        ],
        ids=["watch", "hands", "attempts", "land"],
    )
    def test_nothing_else_lands_in_a_repository(
        self, tmp_path: Path, config: dict[str, Any], begin: Callable[[Runtime], Observable[Any]]
    ) -> None:
        """Whatever lands holds the repository, before its first event; so it can be refused."""
        project = SlotProject(tmp_path, **config)
        lock = WorkspaceLock(project.folder / ".git/cuggino")
        refused = pytest.raises(WorkspaceLocked, match="is in use by process")
        with lock.hold(command="another", since=None), refused:
            next(cuggino.iterate(begin(project.runtime())))
        assert isinstance(next(cuggino.iterate(begin(project.runtime()))), ev.Event)

    def test_a_watch_whose_lock_another_process_has_taken(self, tmp_path: Path) -> None:
        """The lock was removed while the watch waited; it begins nothing any more."""
        project = SlotProject(tmp_path, slots=1)
        other = Workspace(project.folder)
        with ExitStack() as stack:
            with pytest.raises(WorkspaceLocked):
                for event in cuggino.iterate(project.runtime().watch()):
                    assert not isinstance(event, ev.WatchProcessingItem)
                    if isinstance(event, ev.WatchBacklogWaiting):
                        (project.workspace.folder / "lock").unlink()
                        stack.enter_context(other.lock())
                        project.item("1", "echo 1 >shared.txt")
            assert other.holder() is not None


class TestPieces:
    """One attempt and one landing, for a loop of one's own."""

    @pytest.mark.real_agent
    def test_an_item_sent_back_lands_in_the_end(self, tmp_path: Path) -> None:
        project = SlotProject(tmp_path, slots=1)
        for name in "12":
            project.item(name, RESOLVE.format(name))
        runtime = project.runtime()
        first, second = ([*cuggino.iterate(runtime.attempt(f"{n}.md", slot=n))][-1] for n in (1, 2))
        assert isinstance(first, ev.WatchCandidate)
        assert isinstance(second, ev.WatchCandidate)
        landed = [*cuggino.iterate(runtime.land(first))]
        assert ["1.md"] == completed(landed)
        assert isinstance(landed[-1], ev.WatchFollowed)
        back = [*cuggino.iterate(runtime.land(second))][-1]
        assert isinstance(back, ev.WatchSentBack)
        assert ("conflict", ("shared.txt",), 1) == (back.reason, back.paths, back.returns)
        again = runtime.attempt("2.md", slot=2, number=2, returned=Returned(second, back))
        third = [*cuggino.iterate(again)][-1]
        assert isinstance(third, ev.WatchCandidate)
        assert ["2.md"] == completed([*cuggino.iterate(runtime.land(third, returns=1))])
        assert "begin 1 2" == " ".join((project.folder / "shared.txt").read_text().split())

    @pytest.mark.real_agent
    def test_an_attempt_builds_on_what_has_landed(self, tmp_path: Path) -> None:
        """Also when the user's branch could not follow yet."""
        project = SlotProject(tmp_path)
        project.item("1", "echo 1 >shared.txt")
        project.item("2", "cat shared.txt >word2.txt")
        runtime = project.runtime()
        first = [*cuggino.iterate(runtime.attempt("1.md"))][-1]
        assert isinstance(first, ev.WatchCandidate)
        project.git.write("shared.txt", "mine\n")
        landed = [*cuggino.iterate(runtime.land(first))]
        assert any(isinstance(event, ev.WatchFollowDelayed) for event in landed)
        second = [*cuggino.iterate(runtime.attempt("2.md"))][-1]
        assert isinstance(second, ev.WatchCandidate)
        trunk = project.git.git("rev-parse", "refs/cuggino/trunk").strip()
        assert second.base == trunk != project.git.git("rev-parse", "HEAD").strip()
        assert "1\n" == project.git.git("show", f"{second.commit}:word2.txt")

    def test_rejected_work_does_not_land(self, tmp_path: Path) -> None:
        """Its check is green, but its reviewer asks for changes in each iteration."""
        project = SlotProject(tmp_path, max_iterations=1)
        scenario = project.work / "scenario.toml"
        rejected = "<REQUEST_CHANGES>Data loss.</REQUEST_CHANGES>"
        scenario.write_text(
            scenario.read_text().replace("<APPROVED>As specified.</APPROVED>", rejected)
        )
        project.item("1", "echo 1 >word1.txt")
        begin = project.git.git("rev-parse", "main")
        events = project.watch()
        ref = candidate_ref("1.md")
        (parked,) = [event for event in events if isinstance(event, ev.WatchItemParked)]
        assert parked.reason.endswith(f"not approved within 1 iteration; its work is in {ref}")
        assert "1\n" == project.git.git("show", f"{ref}:word1.txt")
        assert begin == project.git.git("rev-parse", "main") == project.git.git("rev-parse", TRUNK)
        made = next(event for event in events if isinstance(event, ev.WatchCandidate))
        with pytest.raises(ConfigError, match=r"the work on 1\.md is not approved"):
            cuggino.run(project.runtime().land(made))
        assert begin == project.git.git("rev-parse", TRUNK)

    def test_an_item_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"9\.md is not in the backlog"):
            cuggino.run(SlotProject(tmp_path).runtime().attempt("9.md"))

    def test_without_a_check_command(self, tmp_path: Path) -> None:
        project = SlotProject(tmp_path, slots=1, check_command=None)
        with pytest.raises(ConfigError, match="more than one slot requires"):
            cuggino.run(project.runtime().attempt("1.md"))
        with pytest.raises(ConfigError, match="more than one slot requires"):
            cuggino.run(project.runtime().watch(slots=2))


class TestEndings:
    """Endings of a watch, and the state that the next one finds."""

    @pytest.mark.real_agent  # the same in virtual time in test_slots.py: with the second command
    def test_agents_and_a_check_that_linger_end_at_the_same_time(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """All are asked to end before any is waited for, and the next watch resumes them."""
        monkeypatch.setattr(ProcessTree, "end", patient(ProcessTree.end))
        place = tmp_path / "lingering"
        place.mkdir()
        (tmp_path / "linger.py").write_text(LINGERS)
        linger = f'"{sys.executable}" "{tmp_path}/linger.py" "{place}"'
        check = f'[ "$CUGGINO_SLOT" != 0 ] || [ ! -d "{place}" ] || {linger} gate'
        project = SlotProject(tmp_path, slots=3, check_command=check, baseline="skip")
        project.item("1", "echo 1 >word1.txt")
        for name in "234":
            project.item(
                name, f'[ ! -d "{place}" ] || {linger} {name}\necho {name} >word{name}.txt'
            )
        interrupt = Subject[object]()

        def stop() -> None:
            eventually(lambda: len([*place.glob("*.begun")]) == 4)
            interrupt.on_next("stop")

        stopping = threading.Thread(target=stop)
        stopping.start()
        with pytest.raises(Interrupted):
            cuggino.run(project.runtime().watch(interrupt=interrupt))
        stopping.join()
        names = sorted(path.name for path in place.glob("*.left"))
        assert ["2.left", "3.left", "4.left", "gate.left"] == names
        place.rename(tmp_path / "over")
        assert [f"{name}.md" for name in "1234"] == completed(project.watch())
