"""The coding loop in virtual time: transitions, markers, pushes, errors and disposal."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, empty, of, operators as ops, throw

from cuggino.agents.base import Role
from cuggino.errors import (
    AgentFailed,
    ConfigError,
    ProcessError,
    StorageError,
    WorkNotCommitted,
    WorkspaceLocked,
)
from cuggino.events import (
    AgentMessage,
    CommitPerformed,
    ContradictoryMarkers,
    PushFailed,
    PushPerformed,
    SessionEnded,
)
from cuggino.stages import Commit
from cuggino.testing import AgentRun, Marbles, no_leaks
from tests.loops.coding_loop import CodingLoop, drawn, marbles, tags


@pytest.fixture
def t() -> Marbles:
    return marbles()


def test_a_whole_run(tmp_path: Path, t: Marbles) -> None:
    """Plan, two tasks and the review follow each other, each agent gone before the next starts."""
    planner = t.cold("-a-c|")
    first, second = t.cold("-n-g--|"), t.cold("-d|")
    reviewer = t.cold("--y-s|")
    loop = CodingLoop(
        tmp_path, planning=[planner], implementing=[first, second], reviewing=[reviewer]
    )
    with no_leaks():
        t.check(loop.run(), "(IP)a--(CM)N----(GM)-(DV)---s($YL|)")
    t.check_subscriptions(planner, "^---!")
    t.check_subscriptions(first, "----^-----!")
    t.check_subscriptions(second, "----------^-!")
    t.check_subscriptions(reviewer, "------------^----!")
    loop.assert_released()


def test_agents_that_linger(tmp_path: Path, t: Marbles) -> None:
    """An agent that lingers after its marker is terminated within `linger` seconds."""
    planner, worker, reviewer = t.cold("-c-a-a-a-a"), t.cold("d-----a"), t.cold("y---s--a")
    loop = CodingLoop(tmp_path, planning=[planner], implementing=[worker], reviewing=[reviewer])
    t.check(loop.run(linger=5), "(IP)-----(CM)----(DV)---s($YL|)")
    t.check_subscriptions(planner, "^-----!")
    t.check_subscriptions(worker, "------^----!")
    t.check_subscriptions(reviewer, "-----------^----!")


def test_a_round_that_is_sent_back(tmp_path: Path, t: Marbles) -> None:
    """Requested changes start the next iteration, whose planner receives the marker's text."""
    loop = drawn(tmp_path, t, "-c| -i|", "-d|", "-r|")
    seen = t.record(loop.run())
    assert seen[:9] == t.parse("(IP)-(CM)-(DV)-(R2Q)")[:9]
    assert ["SpecIssue", "LoopSpecIssue"] == [value.tag for _, kind, value in seen[9:11]]
    assert [False, True] == ["redo" in prompt for prompt in loop.prompts("planning")]
    issues = list(loop.workspace.spec_issues.iterdir())
    assert ["unclear"] == [file.read_text() for file in issues]
    assert issues[0].name == seen[10][2].filename
    loop.assert_released()


def test_slow_reviews_after_every_task(tmp_path: Path, t: Marbles) -> None:
    """With `slow` an approval of unfinished work is followed by the next task."""
    loop = drawn(tmp_path, t, "c|", "g| d|", "y| y|")
    t.check(loop.run(slow=True), "(IP)(CM)(GV)(YM)(DV)(YL|)")
    assert [True, False] == ["not finished yet" in prompt for prompt in loop.prompts("reviewing")]


def test_slow_sends_back_at_once(tmp_path: Path, t: Marbles) -> None:
    """With `slow`, changes requested after the first task start the next iteration."""
    loop = drawn(tmp_path, t, "c| -", "g|", "r|")
    t.check(loop.run(slow=True), "(IP)(CM)(GV)(R2Q)", dispose_at=9)


HOOK: Observable[Any] = throw(ProcessError("git", "hook"))
ALL = of(Commit("abc", "all"))
CHANGED = {"commit": True, "progress_patience": 3}


@pytest.mark.parametrize(
    ("implementing", "options", "commits", "course", "messages"),
    [
        ("g| g| g|", {"max_tasks_per_plan": 2}, [], "(IP)(CM)(GM)(GTV)(YL|)", []),
        ("g| d|", {"max_tasks_per_plan": 2}, [], "(IP)(CM)(GM)(DV)(YL|)", []),
        ("d|", {}, [], "(IP)(CM)(DV)(YL|)", []),
        ("d|", {"commit": True}, [HOOK, ALL], "(IP)(CM)(DFV)(YKL|)", ["all"] * 2),
        ("d|", {"commit": True}, [HOOK, empty()], "(IP)(CM)(DFV)(YL|)", ["all"] * 2),
        ("g| d|", {"commit": True}, [HOOK, ALL], "(IP)(CM)(GFM)(DKV)(YL|)", ["one", "all"]),
        ("w|", CHANGED, [ALL], "(IP)(CM)(WKV)(YL|)", ["nothing"]),
        ("w|", {"commit": True}, [], "(IP)(CM)(WV)(YL|)", []),
    ],
    ids=[
        "the task limit goes to review",
        "the last allowed task may finish",
        "without commit the repository is left alone",
        "a failed commit is tried again before the approval",
        "a failed commit without anything left",
        "a later commit makes up for a failed one",
        "changes of an agent without a task are committed",
        "no more work is not committed",
    ],
)
def test_tasks_and_commits(
    implementing: str,
    options: dict[str, Any],
    commits: list[Observable[Any]],
    course: str,
    messages: list[str],
    tmp_path: Path,
) -> None:
    """Tasks, their commits and the review follow each other as drawn."""
    t = marbles(K=CommitPerformed(iteration=1, commit_hash="abc", message="all"))
    states = ["before", "after"]
    loop = drawn(tmp_path, t, "c|", implementing, "y|", commits=commits, fingerprints=states)
    t.check(loop.run(**options), course)
    assert messages == loop.repository.messages
    assert ("commit" in options) == ("git diff" in loop.prompts("reviewing")[0])


class TestCommits:
    def test_each_task_is_committed_before_the_next_starts(self, tmp_path: Path) -> None:
        """Each task is committed without the specifications before the next agent starts."""
        t = marbles(k=Commit(hash="abc", message="one"))
        commit = t.cold("--k|")
        second = t.cold("-d|")
        loop = drawn(tmp_path, t, "c|", [t.cold("g|"), second], "y|", commits=[commit, empty()])
        t.check(loop.run(commit=True), "(IP)(CM)G--(KM)-(DV)(YL|)")
        assert [(Path(".specs"),)] * 2 == loop.repository.excluded
        t.check_subscriptions(commit, "--^--!")
        t.check_subscriptions(second, "-----^-!")
        assert ["one", "all"] == loop.repository.messages
        assert "`git diff --text base..HEAD`" in loop.prompts("reviewing")[0]

    def test_a_run_whose_work_is_not_committed_is_not_approved(
        self, tmp_path: Path, t: Marbles
    ) -> None:
        """It fails after the review, with git's reason, and can be resumed."""
        loop = drawn(
            tmp_path, t, "c|", "d|", "y|", commits=[throw(ProcessError("git", "hook"))] * 2
        )
        seen = t.record(loop.run(commit=True))
        assert "Approved CommitFailed" == tags(seen[-3:])
        error = seen[-1][2]
        assert isinstance(error, WorkNotCommitted)
        assert ("the work is not committed: hook", 1) == (error.message, error.code)


class TestReview:
    def test_a_persons_review_goes_to_the_first_planner_alone(
        self, tmp_path: Path, t: Marbles
    ) -> None:
        """The first planner receives `review`; the second receives the reviewer's."""
        loop = drawn(
            tmp_path, t, "c| i|", "d|", [AgentRun(t.cold("r|"), review="the file's words")]
        )
        t.record(loop.run(review="by a person"))
        first, second = loop.prompts("planning")
        assert ("by a person" in first, "the file's words" in first) == (True, False)
        assert ("by a person" in second, "the file's words" in second) == (False, True)
        assert "redo" not in second
        assert not any(
            "by a person" in o for o in loop.prompts("implementing") + loop.prompts("reviewing")
        )


# -- quoted and contradictory markers in the coding loop, in virtual time


def loop_with(folder: Path, t: Marbles, *reviews: str) -> CodingLoop:
    """Return a loop with one task and these reviews; a second iteration ends it."""
    return drawn(folder, t, "c| i|", "d|", [*map(t.cold, reviews)], can_resume=True)


@pytest.mark.parametrize(
    "text",
    [
        "> <APPROVED>ok</APPROVED>",
        "<thinking>\nI could answer\n<APPROVED>ok</APPROVED>",
        "If the tests passed I would write:\n<APPROVED>ok</APPROVED>",
        "<APPROVED>NOT approved: 9 tests fail</APPROVED>",
    ],
)
def test_a_quoted_approval(text: str, tmp_path: Path) -> None:
    """It approves nothing: the reviewer is asked, and its answer counts.

    Other quotations: `test_extract_markers_lines`, other objections: `test_last_word`.
    """
    t = marbles(q=AgentMessage(text=text))
    loop = loop_with(tmp_path, t, "q-s|", "r-s|")
    seen = tags(t.record(loop.run()))
    assert "LoopApproved" not in seen
    assert "RequestChanges IterationStart" in seen
    assert 2 == len(loop.prompts("reviewing"))


@pytest.mark.parametrize(
    ("review", "counted"),
    [
        (["b-s|"], "REQUEST_CHANGES"),
        (["y-r-s|"], "REQUEST_CHANGES"),
        (["r-y-s|"], "REQUEST_CHANGES"),
        (["y-s-r|"], "REQUEST_CHANGES"),
        (["y-a-i----------"], "SPEC_ISSUE"),
        (["r-i-y-s|"], "SPEC_ISSUE"),
    ],
)
def test_a_contradictory_review(review: list[str], counted: str, tmp_path: Path) -> None:
    """The most cautious marker counts, and an event has all of them."""
    t = marbles(
        b=AgentMessage(text="<APPROVED>yes</APPROVED>\n<REQUEST_CHANGES>redo</REQUEST_CHANGES>")
    )
    loop = loop_with(tmp_path, t, *review)
    seen = t.record(loop.run())
    told = [value for _, _, value in seen if isinstance(value, ContradictoryMarkers)]
    assert [("reviewing", counted)] == [(event.phase, event.counted) for event in told]
    assert ("APPROVED", "yes") in told[0].markers
    assert "LoopApproved" not in tags(seen)


def test_an_implementer_that_is_not_sure(tmp_path: Path, t: Marbles) -> None:
    """Of done and progress, progress counts: the next task follows, and no review."""
    loop = drawn(tmp_path, t, "c|", "d-g-s| d-i-s|")
    seen = tags(t.record(loop.run()))
    assert 2 == seen.count("ContradictoryMarkers")
    assert "Progress ImplementingStart" in seen
    assert seen.endswith("SpecIssue LoopSpecIssue")


def test_an_approval_after_a_failure(tmp_path: Path) -> None:
    """An approval behind a result that is an error approves nothing."""
    t = marbles(
        f=SessionEnded(outcome="failed"), error=AgentFailed("crashed", reason="bad_request")
    )
    review: Observable[Any] = t.cold("a-f-y#")
    loop = drawn(tmp_path, t, "c|", "d|", [review])
    *_, (_, kind, error) = seen = t.record(loop.run())
    assert "LoopApproved" not in tags(seen)
    assert ("error", True) == (kind, "crashed" in str(error))


# -- pushes of the coding loop in virtual time


COMMIT = Commit(hash="abc", message="one")


def push_marbles() -> Marbles:
    """U is a push that was performed, E one that failed."""
    return marbles(
        U=PushPerformed(iteration=1, commit_hash="abc", remote="origin/main"),
        E=PushFailed(iteration=1, message="rejected"),
    )


def loop(
    t: Marbles, folder: Path, *, commits: list[Observable[Any]], pushes: list[Observable[Any]]
) -> CodingLoop:
    """Two tasks, the first ends with PROGRESS, the second with DONE; then an approval."""
    return drawn(folder, t, "c|", "g| d|", "y|", commits=commits, pushes=pushes)


def test_a_push_after_each_commit(tmp_path: Path) -> None:
    """Each commit is pushed before the next agent starts."""
    t = push_marbles()
    push = t.cold("--|")
    played = loop(t, tmp_path, commits=[of(COMMIT), of(COMMIT)], pushes=[push, push])
    stream = played.run(commit=True, push="origin/topic/page")
    assert (
        "ImplementingStart Progress CommitPerformed PushPerformed "
        "ImplementingStart Done CommitPerformed PushPerformed ReviewingStart"
    ) in tags(t.record(stream))
    assert [("origin", "topic/page")] * 2 == played.repository.pushed_to
    t.check_subscriptions(push, "--^-!", "-----^-!")


REJECTED: Observable[Any] = throw(ProcessError("git", "rejected"))
MADE = of(COMMIT)
BOTH = {"commit": True, "push": "origin/main"}


@pytest.mark.parametrize(
    ("commits", "pushes", "options", "ends", "pushed"),
    [
        ([MADE, empty()], [REJECTED], BOTH, "CommitPerformed PushFailed ImplementingStart Done", 1),
        ([HOOK, empty()], [], BOTH, "CommitFailed ImplementingStart Done", 0),
        ([HOOK, HOOK, MADE], [empty()], BOTH, "CommitPerformed PushPerformed LoopApproved", 1),
        ([MADE, MADE], [], {"commit": True}, "Done CommitPerformed ReviewingStart", 0),
        ([], [], {"push": "origin/main"}, "Done ReviewingStart", 0),
    ],
    ids=["failed push", "no commit", "commit made up for", "without push", "without commit"],
)
def test_pushes(
    commits: list[Any],
    pushes: list[Any],
    options: dict[str, Any],
    ends: str,
    pushed: int,
    tmp_path: Path,
) -> None:
    """A commit is pushed if both are asked for; a push that fails is reported, and no end."""
    played = loop(push_marbles(), tmp_path, commits=commits, pushes=pushes)
    seen = tags(marbles().record(played.run(**options)))
    assert ends in seen
    assert seen.endswith("LoopApproved")
    assert pushed == len(played.repository.pushed_to)
    played.assert_released()


# -- errors and disposal of the coding loop in virtual time


ROLES: tuple[Role, ...] = ("planning", "implementing", "reviewing")


class TestErrors:
    def test_a_second_run_is_refused(self, tmp_path: Path, t: Marbles) -> None:
        """A workspace that another run holds is an error at once, and stays the other's."""
        first = CodingLoop(tmp_path, planning=[t.cold("-" * 9)])
        second = CodingLoop(tmp_path, planning=[t.cold("-")])
        running = first.run().subscribe(scheduler=t.scheduler)
        seen = t.record(second.run(), until=5)
        assert [WorkspaceLocked] == [type(value) for _, _, value in seen]
        assert [] == second.agent.spawned
        left = {file.name[36:] for file in first.workspace.wip.iterdir()}
        assert {".md", ".planning", ".instructions"} == left
        running.dispose()
        t.scheduler.advance_to(9)
        first.assert_released()

    def test_a_workspace_that_cannot_be_made(self, tmp_path: Path, t: Marbles) -> None:
        """A file in the workspace's place is a storage error before anything starts."""
        (tmp_path / ".cuggino").write_text("")
        loop = CodingLoop(tmp_path, planning=[t.cold("c|")])
        assert [StorageError] == [type(value) for _, _, value in t.record(loop.run())]
        assert [] == loop.agent.spawned

    def test_specifications_that_are_gone(self, tmp_path: Path, t: Marbles) -> None:
        """Missing specifications are an error in any phase, and never an approval."""

        def remove(_event: object) -> None:
            shutil.rmtree(tmp_path / ".specs", ignore_errors=True)

        checks = [of(b"fine"), of(b"fine").pipe(ops.do_action(remove))]
        loop = drawn(tmp_path, t, "c|", "a-d|", "Y|", commands={"check": checks})
        error = t.record(loop.run(check_command="check"))[-1][2]
        assert isinstance(error, ConfigError)
        assert f"the specs folder {tmp_path / '.specs'} does not exist" == error.message
        assert [1, 1, 0] == [len(loop.prompts(role)) for role in ROLES]
        loop.assert_released()

    def test_a_workspace_that_is_gone(self, tmp_path: Path, t: Marbles) -> None:
        """A workspace that is removed meanwhile ends the loop with an error of storage."""

        def remove(_event: object) -> None:
            shutil.rmtree(tmp_path / ".cuggino", ignore_errors=True)

        loop = drawn(
            tmp_path, t, "c|", "a-d|", commands={"check": [of(b"fine").pipe(ops.do_action(remove))]}
        )
        error = t.record(loop.run(check_command="check"))[-1][2]
        assert isinstance(error, StorageError)

    def test_a_lock_that_is_gone(self, tmp_path: Path, t: Marbles) -> None:
        """A removed lock is taken again before the next session: a second run is refused."""

        def remove(_event: object) -> None:
            (tmp_path / ".cuggino" / "lock").unlink()

        checks = [of(b"fine"), of(b"fine").pipe(ops.do_action(remove))]
        first = drawn(tmp_path, t, "c|", "a-d|", "-" * 30, commands={"check": checks})
        running = first.run(check_command="check").subscribe(scheduler=t.scheduler)
        t.scheduler.advance_to(9)
        assert [1, 1, 1] == [len(first.prompts(role)) for role in ROLES]
        seen = t.record(CodingLoop(tmp_path, planning=[]).run(), until=t.now + 5)
        assert [WorkspaceLocked] == [type(value) for _, _, value in seen]
        running.dispose()
        t.scheduler.advance_to(20)
        first.assert_released()


def test_prices_are_loaded_first(
    tmp_path: Path, t: Marbles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package of the price list may be replaced once an agent works."""
    loop = drawn(tmp_path, t, "i|")
    begun: list[int] = []
    name = "cuggino.loops.frame.framing.load_prices"
    monkeypatch.setattr(name, lambda: begun.append(len(loop.agent.spawned)))
    t.record(loop.run())
    assert ([0], 1) == (begun, len(loop.agent.spawned))


class TestDisposal:
    """Disposal at any point."""

    @pytest.mark.parametrize(
        "cut", ["planning", "setup", "check", "implementing", "commit", "push", "reviewing"]
    )
    def test_at(self, tmp_path: Path, cut: str) -> None:
        """Agent, command, commit or push is released at once, with all files and the workspace."""
        t = marbles(b=b"line", k=COMMIT)
        usual = {"planning": "c|", "implementing": "d|", "reviewing": "y|", "commit": "k|"}
        begins = "b" if cut in ("setup", "check") else "-" if cut in ("commit", "push") else "-a"
        streams = {
            name: t.cold(f"{begins}{'-' * 20}" if name == cut else usual.get(name, "|"))
            for name in (*usual, "setup", "check", "push")
        }
        loop = CodingLoop(
            tmp_path,
            planning=[streams["planning"]],
            implementing=[streams["implementing"]],
            reviewing=[streams["reviewing"]],
            commands={"setup": [streams["setup"]], "check": [streams["check"]] * 2},
            commits=[streams["commit"]],
            pushes=[streams["push"]],
        )
        commands = {"setup_command": "setup", "check_command": "check"}
        with no_leaks():
            seen = t.record(loop.run(**commands, **BOTH), dispose_at=9)
        assert "next" == seen[-1][1]
        assert [9] == [ended for _, ended in streams[cut].subscriptions]
        loop.assert_released()

    def test_a_loop_may_run_again(self, tmp_path: Path, t: Marbles) -> None:
        """Each subscription is a separate run with a separate session."""
        loop = CodingLoop(tmp_path, planning=[t.cold("i|"), t.cold("i|")])
        stream = loop.run()
        for _ in range(2):
            assert tags(t.record(stream, until=t.now + 9)).endswith("LoopSpecIssue")
        first, second = (o.env["CUGGINO_SESSION_FILE"] for o in loop.agent.spawned)
        assert first < second
        loop.assert_released()
