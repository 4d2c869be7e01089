"""Setup, check and gate of the coding loop in virtual time: what an approval depends on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest
from reactivex import Observable, concat, defer, empty, of, operators as ops, throw, timer

from cuggino import run
from cuggino.errors import AgentFailed, LoopError
from cuggino.events import (
    ApprovalBlocked,
    Baseline,
    CheckFlaky,
    CheckUnmeasured,
    CheckVerdict,
    CheckWeakened,
    CommandOutputEvent,
    CommandStartedEvent,
    Event,
    GateChanged,
    LoopApproved,
    LoopMaxIterations,
    LoopStalled,
    NotInCommit,
    SpecsChanged,
)
from cuggino.gate import Standing
from cuggino.loops import LoopRunOptions
from cuggino.storage import list_journals, read_journal
from cuggino.testing import no_leaks
from tests.loops.coding_loop import CodingLoop, drawn, fails, marbles, outputs, says, tags

E = TypeVar("E", bound=Event)

CHECK = "make test"
RED = b"FAILED tests/test_a.py::test_a - assert 1 == 2\n1 failed in 0.01s\n"
OTHER = b"FAILED tests/test_b.py::test_b - assert 1 == 2\n1 failed in 0.01s\n"
SPEC = "The function f returns 2 from now on, and test_a says so."


def red(output: bytes = RED) -> Observable[bytes]:
    """A check that fails with this output."""
    return concat(of(output), fails(1))


def changing(action: Callable[[], object], said: object) -> Observable[Any]:
    """Return an agent or a command that performs the action before it emits anything."""

    def act(_scheduler: object) -> Observable[Any]:
        action()
        return empty()

    return concat(defer(act), of(said))


def loop(
    folder: Path, *checks: Observable[bytes], reviews: tuple[str | Event, ...] = ("yes",)
) -> CodingLoop:
    """A loop with an honest specification, whose agents say that they are done."""
    t = marbles()
    times = len(reviews)
    played = CodingLoop(
        folder,
        planning=[of(t.events["c"])] * times,
        implementing=[of(t.events["d"])] * times,
        reviewing=[of(says("APPROVED", it) if isinstance(it, str) else it) for it in reviews],
        commands={CHECK: list(checks)},
        commits=[empty()] * 10,
    )
    (folder / ".specs" / "a.md").write_text(SPEC, encoding="utf-8")
    return played


def story(played: CodingLoop, **options: Any) -> list[Event]:
    """Run the loop with `gate: block`; return its events."""
    given = {"check_command": CHECK, "gate": "block", **options}
    return [value for _, kind, value in marbles().record(played.run(**given)) if kind == "next"]


def names_of(events: list[Event]) -> str:
    return tags([(0.0, "next", event) for event in events])


def kinds(events: list[Event], wanted: type[E]) -> list[E]:
    return [event for event in events if isinstance(event, wanted)]


class TestBaseline:
    def test_what_was_red_before_does_not_block(self, tmp_path: Path) -> None:
        """The planner is told, and the first implementing agent gets that output."""
        played = loop(tmp_path, red(), red())
        events = story(played, baseline="run")
        assert [Baseline(iteration=1, exit_code=1, failing=("tests/test_a.py::test_a",))] == kinds(
            events, Baseline
        )
        verdict = CheckVerdict(iteration=1, verdict="known", failing=("tests/test_a.py::test_a",))
        assert [verdict] == kinds(events, CheckVerdict)
        assert isinstance(events[-1], LoopApproved)
        assert "tests/test_a.py::test_a" in played.prompts("planning")[0]
        assert "exited with code 1" in played.prompts("implementing")[0]
        assert [CHECK] * 2 == played.ran

    def test_a_new_failure_blocks(self, tmp_path: Path) -> None:
        """Beside an old one, too."""
        events = story(loop(tmp_path, red(), red(RED + OTHER)), baseline="run", max_iterations=1)
        [blocked] = kinds(events, ApprovalBlocked)
        assert "tests/test_b.py::test_b" in blocked.failing

    def test_failures_that_cannot_be_told_apart(self, tmp_path: Path) -> None:
        """A check that is red as a whole may be red for what is to be done: it has to pass."""
        events = story(loop(tmp_path, red(b"no\n"), red(b"no\n")), baseline="run", max_iterations=1)
        assert 1 == len(kinds(events, ApprovalBlocked))

    def test_must_pass(self, tmp_path: Path) -> None:
        """With `must-pass` no agent is paid for when it fails."""
        events = story(loop(tmp_path, red()), baseline="must-pass")
        assert [Baseline, LoopStalled] == [type(event) for event in events[-2:]]
        [stalled] = kinds(events, LoopStalled)
        assert ("check", True) == (stalled.reason, "test_a" in stalled.message)

    def test_after_the_setup(self, tmp_path: Path) -> None:
        """The setup command runs before it, and not again in the first iteration."""
        played = loop(tmp_path, of(b"ok"), of(b"ok"))
        played.can_run("setup", of(b"ready"))
        names = tags(
            [
                (0.0, "next", e)
                for e in story(played, baseline="run", setup_command="setup", setup_strict=True)
            ]
        )
        assert names.startswith(
            "SetupCommandStarted SetupCommandOutput CheckCommandStarted CheckCommandOutput "
            "Baseline IterationStart PlanningStart PlanComplete ImplementingStart Done "
            "ReviewingStart"
        )


class TestWeakened:
    """The check passes, but fails with the versions of the start of what has changed."""

    CHANGED = ("tests/test_a.py",)

    def played(
        self, folder: Path, *copies: Observable[bytes], reviews: tuple[str, ...]
    ) -> CodingLoop:
        checks = [of(b"fine")] * (2 * len(reviews))
        played = loop(folder, *checks, reviews=reviews)
        played.work.changes = [*self.CHANGED, "src/app.py"]
        played.work.copies = list(copies)
        return played

    def test_unanswered(self, tmp_path: Path) -> None:
        """The reviewer is told of the finding; an approval without an answer is void."""
        played = self.played(tmp_path, red(), of(b"fine"), reviews=("yes",))
        events = story(played, max_iterations=1)
        [weakened] = kinds(events, CheckWeakened)
        assert ("C1", self.CHANGED) == (weakened.id, weakened.paths)
        assert [list(self.CHANGED), []] == played.work.put_back
        [blocked] = kinds(events, ApprovalBlocked)
        assert "weakened" == blocked.reason
        assert "C1" in played.prompts("reviewing")[0]
        assert isinstance(events[-1], LoopMaxIterations)

    def test_answered_with_the_clause(self, tmp_path: Path) -> None:
        """Honest work changes tests: an approval that quotes the specification counts."""
        answer = "Good.\nC1: `The function f returns 2 from now on`"
        played = self.played(tmp_path, red(), of(b"fine"), reviews=(answer,))
        assert isinstance(story(played)[-1], LoopApproved)

    def test_a_change_that_hides_nothing(self, tmp_path: Path) -> None:
        """It is told, and voids nothing."""
        played = self.played(tmp_path, of(b"fine"), reviews=("yes",))
        events = story(played)
        assert [GateChanged(iteration=1, paths=self.CHANGED)] == kinds(events, GateChanged)
        assert [] == [*kinds(events, CheckWeakened), *kinds(events, CheckUnmeasured)]
        assert isinstance(events[-1], LoopApproved)

    @pytest.mark.parametrize("copies", [(), (red(), red())], ids=["no copy", "red in any copy"])
    def test_not_measured(self, tmp_path: Path, copies: tuple[Observable[bytes], ...]) -> None:
        """Where a copy tells nothing, that is said, and the approval counts."""
        events = story(self.played(tmp_path, *copies, reviews=("yes",)))
        assert [CheckUnmeasured(iteration=1, paths=self.CHANGED)] == kinds(events, CheckUnmeasured)
        assert isinstance(events[-1], LoopApproved)

    def test_three_times(self, tmp_path: Path) -> None:
        """The run ends when agents do not put it right."""
        copies = [red(), of(b"fine")] * 3
        events = story(self.played(tmp_path, *copies, reviews=("yes",) * 4))
        assert isinstance(events[-1], LoopStalled)
        assert 3 == len(kinds(events, ApprovalBlocked))

    def test_told_only_with_context(self, tmp_path: Path) -> None:
        """With `gate: context` the reviewer decides."""
        played = self.played(tmp_path, red(), of(b"fine"), reviews=("yes",))
        events = story(played, gate="context")
        assert 1 == len(kinds(events, CheckWeakened))
        assert isinstance(events[-1], LoopApproved)


class TestRed:
    def test_flaky(self, tmp_path: Path) -> None:
        """A new failure that does not come again in a copy is a flake, and costs no session."""
        played = loop(tmp_path, of(b"fine"), red())
        played.work.copies = [of(b"fine")]
        events = story(played)
        [flaky] = kinds(events, CheckFlaky)
        assert ("tests/test_a.py::test_a",) == flaky.tests
        assert isinstance(events[-1], LoopApproved)

    def test_flakes_are_counted(self, tmp_path: Path) -> None:
        """How often the same test was flaky lately is told, over several runs."""
        told = []
        for _ in range(2):
            played = loop(tmp_path, of(b"fine"), red())
            played.work.copies = [of(b"fine")]
            told += [flaky.times for flaky in kinds(story(played), CheckFlaky)]
        assert [1, 2] == told

    def test_repeated_once_for_a_tree(self, tmp_path: Path) -> None:
        """A red check of the same work again is no flake."""
        played = loop(tmp_path, *[red()] * 4, reviews=("yes",) * 2)
        played.work.copies = [red(), of(b"fine")]
        events = story(played, max_iterations=2)
        assert [] == kinds(events, CheckFlaky)
        assert 2 == len(kinds(events, ApprovalBlocked))
        assert [[]] == played.work.put_back

    def test_old_failures_are_not_repeated(self, tmp_path: Path) -> None:
        """They block nothing."""
        played = loop(tmp_path, red(), red())
        played.work.copies = [of(b"fine")]
        events = story(played, baseline="run")
        assert [] == played.work.put_back
        assert isinstance(events[-1], LoopApproved)

    def test_unfixable(self, tmp_path: Path) -> None:
        """The third time that the same failure blocks an approval ends the run, with it."""
        events = story(loop(tmp_path, *[red()] * 8, reviews=("yes",) * 4))
        assert 3 == len(kinds(events, ApprovalBlocked))
        assert isinstance(events[-1], LoopStalled)
        assert ("check", True) == (events[-1].reason, "test_a" in events[-1].message)

    def test_a_green_check_between_is_progress(self, tmp_path: Path) -> None:
        """Only approvals in a row count."""
        checks = [red(), red(), red(), red(), red(), of(b"fine"), red(), red(), red(), red()]
        reviews = ("a", "b", says("REQUEST_CHANGES", "redo"), "d", "e")
        played = loop(tmp_path, *checks, reviews=reviews)
        events = story(played, max_iterations=5)
        assert 4 == len(kinds(events, ApprovalBlocked))
        assert isinstance(events[-1], LoopMaxIterations)

    def test_another_failure_is_progress(self, tmp_path: Path) -> None:
        """The count begins anew."""
        checks = [red(), red(), red(), red(), red(OTHER), red(OTHER), red(OTHER), red(OTHER)]
        events = story(loop(tmp_path, *checks, reviews=("yes",) * 4), max_iterations=4)
        assert 4 == len(kinds(events, ApprovalBlocked))
        assert isinstance(events[-1], LoopMaxIterations)


class TestCommitted:
    """The commit is compared with the work that was checked."""

    def played(self, folder: Path, *standings: Standing, reviews: int = 1) -> CodingLoop:
        played = loop(folder, *[of(b"fine")] * 2 * reviews, reviews=("yes",) * reviews)
        played.work.standings = list(standings)
        return played

    def test_mended(self, tmp_path: Path) -> None:
        """What git's index hid is staged and committed."""
        played = self.played(tmp_path, Standing(missing=("a.txt",)), Standing())
        events = story(played, commit=True)
        assert ["a.txt"] == played.work.staged
        told = NotInCommit(iteration=1, reason="missing", paths=("a.txt",), mended=True)
        assert [told] == kinds(events, NotInCommit)
        assert isinstance(events[-1], LoopApproved)

    @pytest.mark.parametrize(
        ("standing", "reason"),
        [(Standing(missing=("a.txt",)), "missing"), (Standing(nested=("src/",)), "nested")],
    )
    def test_lacking(self, tmp_path: Path, standing: Standing, reason: str) -> None:
        """What cannot be mended voids the approval, and ends the run the third time."""
        events = story(self.played(tmp_path, standing, reviews=4), commit=True)
        assert {reason} == {event.reason for event in kinds(events, NotInCommit)}
        assert 3 == len(kinds(events, ApprovalBlocked))
        assert isinstance(events[-1], LoopStalled)

    @pytest.mark.parametrize(
        ("standing", "paths"),
        [
            (Standing(ignored=("a.log", "node_modules/", "pkg/__pycache__/")), ("a.log",)),
            (Standing(ignored=("build/", ".env", ".cache/", "a.pyc")), ("build/", ".env")),
            (Standing(removed=("a.txt",)), ("a.txt",)),
        ],
    )
    def test_told(self, tmp_path: Path, standing: Standing, paths: tuple[str, ...]) -> None:
        """What need not be wrong is told; caches are no news."""
        events = story(self.played(tmp_path, standing), commit=True)
        assert [paths] == [event.paths for event in kinds(events, NotInCommit)]
        assert isinstance(events[-1], LoopApproved)

    def test_without_commits(self, tmp_path: Path) -> None:
        """Nothing is compared."""
        events = story(self.played(tmp_path, Standing(missing=("a.txt",))))
        assert [] == kinds(events, NotInCommit)
        assert isinstance(events[-1], LoopApproved)


class TestSpecifications:
    def played(self, folder: Path, *reviews: Event, spec: Path) -> CodingLoop:
        """A loop during whose first check a person changes a specification."""
        t = marbles()
        write = changing(lambda: spec.write_text("more", encoding="utf-8"), b"fine")
        return CodingLoop(
            folder,
            planning=[of(t.events["c"])] * 2,
            implementing=[of(t.events["d"])] * 2,
            reviewing=[of(review) for review in reviews],
            commands={CHECK: [write, *[of(b"fine")] * 3]},
        )

    def test_changed_before_the_next_round(self, tmp_path: Path) -> None:
        """The prompts of the next planner and of the reviewer name the changed specifications."""
        spec = tmp_path / ".specs" / "new.md"
        played = self.played(
            tmp_path, says("REQUEST_CHANGES", "redo"), says("APPROVED", "yes"), spec=spec
        )
        events = story(played)
        names = names_of(events)
        assert SpecsChanged(iteration=2, paths=(".specs/new.md",)) in events
        assert GateChanged(iteration=1, paths=(".specs/new.md",)) in events
        assert 1 == names.count("SpecsChanged") == names.count("GateChanged")
        planner = played.prompts("planning")[1]
        assert "`.specs/new.md`" in planner
        assert "redo" in planner
        assert names.endswith("LoopApproved")

    def test_approved_meanwhile(self, tmp_path: Path) -> None:
        """An approval of work that was planned by older specifications leads to another round."""
        spec = tmp_path / ".specs" / "new.md"
        played = self.played(tmp_path, says("APPROVED", "a"), says("APPROVED", "b"), spec=spec)
        names = names_of(story(played))
        assert "Approved CheckVerdict SpecsChanged IterationStart" in names
        assert names.endswith("Approved CheckVerdict LoopApproved")
        assert "`.specs/new.md`" in played.prompts("planning")[1]


# -- setup, check and gate of the coding loop in virtual time


def _is_alive(pid: Path) -> bool:
    try:
        return psutil.Process(int(pid.read_text())).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class TestCommands:
    def test_a_server_that_setup_keeps_running(self, tmp_path: Path) -> None:
        """It runs until the run ends, also in the process that resumes it, and no longer."""
        server = tmp_path / "server"
        alive: list[bool] = []
        gone = AgentFailed("gone", reason="auth")
        t = marbles()

        def worked(ending: Observable[Any]) -> Observable[Any]:
            def work(_: object) -> Observable[Any]:
                alive.append(_is_alive(server))
                return ending

            return defer(work)

        loop = CodingLoop(
            tmp_path,
            planning=[of(t.events["c"])],
            implementing=[worked(throw(gone)), worked(of(t.events["d"]))],
            reviewing=[worked(of(t.events["y"]))],
        )
        options = LoopRunOptions(
            focus="the page",
            cwd=tmp_path,
            journal=True,
            setup_command=f"setsid sleep 600 >/dev/null 2>&1 & echo $! >{server}",
            setup_keeps_running=True,
        )
        with no_leaks():
            with pytest.raises(LoopError):
                run(loop.service.run(options))
            assert [True] == alive
            assert not _is_alive(server)
            (journal,) = list_journals(loop.workspace.journal)
            last = run(loop.service.run(options, resume=read_journal(journal)))
        assert isinstance(last, LoopApproved)
        assert [True, True, True] == alive
        assert not _is_alive(server)

    def test_commands_are_announced_before_they_run(self, tmp_path: Path) -> None:
        """The start of a command is emitted at once, its output when it has ended."""
        t = marbles()
        slow = timer(600.0).pipe(ops.map(lambda _: b"ok"))
        loop = CodingLoop(
            tmp_path,
            planning=[of(t.events["c"])],
            implementing=[of(t.events["d"])],
            reviewing=[of(t.events["y"])],
            commands={"setup": [slow], "check": [slow, slow]},
        )
        seen = t.record(loop.run(setup_command="setup", check_command="check"))
        started = [(at, e.command) for at, _, e in seen if isinstance(e, CommandStartedEvent)]
        ended = [at for at, _, event in seen if isinstance(event, CommandOutputEvent)]
        assert ["setup", "check", "check"] == [command for _, command in started]
        assert [at + 600 for at, _ in started] == ended

    @pytest.mark.parametrize("code", [1, 127, 124])
    def test_a_failed_setup_ends_a_strict_loop(self, tmp_path: Path, code: int) -> None:
        """With `setup_strict` the output is emitted, then the loop fails in its setup phase."""
        t = marbles()
        loop = CodingLoop(tmp_path, planning=[t.cold("c|")], commands={"setup": [fails(code)]})
        seen = t.record(loop.run(setup_command="setup", setup_strict=True))
        assert [("SetupCommandOutput", code)] == outputs(seen)
        error = seen[-1][2]
        assert isinstance(error, LoopError)
        assert f"Loop error in setup phase: the setup command exited with code {code}" == str(error)
        assert 1 == len(loop.agent.spawned)
        loop.assert_released()

    def test_the_time_limit_holds_for_each_command(self, tmp_path: Path) -> None:
        """A command above `command_timeout` is ended with 124, and the loop goes on."""
        t = marbles()
        setup, check = t.cold("-" * 20), t.cold("-" * 20)
        loop = drawn(tmp_path, t, "c|", "a----", commands={"setup": [setup], "check": [check]})
        stream = loop.run(setup_command="setup", check_command="check", command_timeout=5)
        seen = t.record(stream, dispose_at=12)
        assert [("SetupCommandOutput", 124), ("CheckCommandOutput", 124)] == outputs(seen)
        t.check_subscriptions(setup, "-^----!")
        t.check_subscriptions(check, "------^----!")


class TestGate:
    def gated(self, tmp_path: Path, *checks: int, reviews: str = "yy") -> CodingLoop:
        t = marbles()
        return CodingLoop(
            tmp_path,
            planning=[of(t.events["c"])] * 2,
            implementing=[of(t.events["d"])] * 2,
            reviewing=[of(t.events[mark]) for mark in reviews],
            commands={"check": [fails(code) if code else of(b"fine") for code in checks]},
        )

    def test_a_blocked_approval_is_sent_back_with_the_check(self, tmp_path: Path) -> None:
        """An approval after a failed check does not count: its output is the next review."""
        loop = self.gated(tmp_path, 0, 1, 0, 0)
        seen = marbles().record(loop.run(check_command="check", gate="block"))
        assert (
            "ReviewingStart CheckCommandStarted CheckCommandOutput Approved ApprovalBlocked "
            "IterationStart"
        ) in tags(seen)
        assert tags(seen).endswith("Approved CheckVerdict LoopApproved")
        blocked = next(value for _, _, value in seen if value and value.tag == "ApprovalBlocked")
        assert (1, 1) == (blocked.iteration, blocked.exit_code)
        first, second = loop.prompts("planning")
        assert "Make the check pass" not in first
        assert "Check command failed with exit code 1." in second

    def test_only_the_check_before_the_review_counts(self, tmp_path: Path) -> None:
        """A failed check before an implementing agent blocks no approval."""
        loop = self.gated(tmp_path, 1, 0)
        seen = marbles().record(loop.run(check_command="check", gate="block"))
        assert tags(seen).endswith("CheckCommandOutput Approved CheckVerdict LoopApproved")

    def test_the_gate_does_not_touch_other_verdicts(self, tmp_path: Path) -> None:
        """Requested changes stay what they are when the check has failed."""
        loop = self.gated(tmp_path, 1, 1, 1, 0, reviews="ry")
        seen = marbles().record(loop.run(check_command="check", gate="block"))
        assert "ApprovalBlocked" not in tags(seen)
        assert "redo" in loop.prompts("planning")[1]

    def test_without_the_gate_a_failed_check_blocks_nothing(self, tmp_path: Path) -> None:
        """With `gate: context` the reviewer decides."""
        loop = self.gated(tmp_path, 1, 1)
        seen = marbles().record(loop.run(check_command="check"))
        assert tags(seen).endswith("Approved LoopApproved")
