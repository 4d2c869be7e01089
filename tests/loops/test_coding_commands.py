"""Setup, check and gate of the coding loop in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil
import pytest
from reactivex import Observable, defer, of, operators as ops, throw, timer

from cuggino import run
from cuggino.errors import AgentFailed, LoopError
from cuggino.events import CommandOutputEvent, CommandStartedEvent, LoopApproved
from cuggino.loops import LoopRunOptions
from cuggino.storage import list_journals, read_journal
from cuggino.testing import no_leaks
from tests.loops.coding_loop import CodingLoop, drawn, fails, marbles, outputs, tags


def _is_alive(pid: Path) -> bool:
    try:
        return psutil.Process(int(pid.read_text())).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class TestCommands:
    def test_setup_once_a_plan_and_check_before_each_agent(self, tmp_path: Path) -> None:
        """Setup runs after planning, check before each implementing agent and the review."""
        t = marbles()
        loop = drawn(
            tmp_path,
            t,
            "c|",
            "g| d|",
            "y|",
            commands={"setup": [of(b"ok")], "check": [fails(1), fails(2), of(b"ok")]},
        )
        seen = t.record(loop.run(setup_command="setup", check_command="check"))
        assert (
            "CheckDoesNotDecide IterationStart PlanningStart PlanComplete "
            "SetupCommandStarted SetupCommandOutput "
            "ImplementingStart CheckCommandStarted CheckCommandOutput Progress "
            "ImplementingStart CheckCommandStarted CheckCommandOutput Done "
            "ReviewingStart CheckCommandStarted CheckCommandOutput Approved LoopApproved"
        ) == tags(seen)
        assert ["setup", "check", "check", "check"] == loop.ran
        assert [0, 1, 2, 0] == [code for _, code in outputs(seen)]
        for code, prompt in zip((1, 2), loop.prompts("implementing"), strict=True):
            assert f"exited with code {code}" in prompt

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
            implementing=[
                worked(throw(gone)),
                worked(of(t.events["d"])),
            ],
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

    def test_a_failed_setup_goes_on(self, tmp_path: Path) -> None:
        """Without `setup_strict` a setup command that fails does not stop the loop."""
        t = marbles()
        loop = drawn(tmp_path, t, "c|", "d|", "y|", commands={"setup": [fails(3)]})
        assert tags(t.record(loop.run(setup_command="setup"))).endswith("LoopApproved")

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

    def test_a_strict_loop_goes_on_after_a_good_setup(self, tmp_path: Path) -> None:
        """With `setup_strict` a setup command that exits with 0 changes nothing."""
        t = marbles()
        loop = drawn(tmp_path, t, "c|", "d|", "y|", commands={"setup": [of(b"ok")]})
        seen = t.record(loop.run(setup_command="setup", setup_strict=True))
        assert tags(seen).endswith("LoopApproved")

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
            commands={
                "check": [fails(code) if code else of(b"fine") for code in checks],
            },
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

    def test_blocked_in_the_last_round(self, tmp_path: Path) -> None:
        """A blocked approval in the last iteration ends the loop without an approval."""
        loop = self.gated(tmp_path, 1, 1)
        seen = marbles().record(loop.run(check_command="check", gate="block", max_iterations=1))
        assert tags(seen).endswith("Approved ApprovalBlocked LoopMaxIterations")
