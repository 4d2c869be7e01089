"""Errors and disposal of the coding loop in virtual time."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from reactivex import of, operators as ops

from cuggino.agents.base import Role
from cuggino.errors import (
    ConfigError,
    LoopError,
    QuotaExceeded,
    SessionError,
    StorageError,
    WorkspaceLocked,
)
from cuggino.events import AgentMessage, Event
from cuggino.testing import no_leaks
from tests.loops.coding_loop import CodingLoop, drawn, marbles, tags

ROLES: tuple[Role, ...] = ("planning", "implementing", "reviewing")


class TestErrors:
    def test_a_quota_ends_the_loop_with_its_code(self, tmp_path: Path) -> None:
        """A usage limit in any phase ends the loop with exit code 12."""
        t = marbles(error=QuotaExceeded("limit reached"))
        loop = CodingLoop(tmp_path, planning=[t.cold("c|")], implementing=[t.cold("-a-#")])
        seen = t.record(loop.run())
        error = seen[-1][2]
        assert isinstance(error, LoopError)
        assert ("implementing", 12, "start again later") == (error.phase, error.code, error.hint)
        assert 4 == seen[-1][0]
        loop.assert_released()

    def test_no_plan_file_is_an_error(self, tmp_path: Path) -> None:
        """A plan that is declared complete without a file is a session error."""
        t = marbles()
        loop = CodingLoop(tmp_path, planning=[t.cold("c|")])
        loop.agent.runs = {"planning": [t.cold("c|")]}
        error = t.record(loop.run())[-1][2]
        assert isinstance(error, SessionError)
        loop.assert_released()

    def test_a_second_run_is_refused(self, tmp_path: Path) -> None:
        """A workspace that another run holds is an error at once, and stays the other's."""
        t = marbles()
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

    def test_a_workspace_that_cannot_be_made(self, tmp_path: Path) -> None:
        """A file in the workspace's place is a storage error before anything starts."""
        t = marbles()
        (tmp_path / ".cuggino").write_text("")
        loop = CodingLoop(tmp_path, planning=[t.cold("c|")])
        assert [StorageError] == [type(value) for _, _, value in t.record(loop.run())]
        assert [] == loop.agent.spawned

    def test_specifications_that_are_gone(self, tmp_path: Path) -> None:
        """Missing specifications are an error in any phase, and never an approval."""
        t = marbles()

        def remove(_event: object) -> None:
            shutil.rmtree(tmp_path / ".specs", ignore_errors=True)

        checks = [of(b"fine"), of(b"fine").pipe(ops.do_action(remove))]
        loop = drawn(tmp_path, t, "c|", "a-d|", "Y|", commands={"check": checks})
        error = t.record(loop.run(check_command="check"))[-1][2]
        assert isinstance(error, ConfigError)
        assert f"the specs folder {tmp_path / '.specs'} does not exist" == error.message
        assert [1, 1, 0] == [len(loop.prompts(role)) for role in ROLES]
        loop.assert_released()

    def test_a_workspace_that_is_gone(self, tmp_path: Path) -> None:
        """A workspace that is removed meanwhile ends the loop with an error of storage."""
        t = marbles()

        def remove(_event: object) -> None:
            shutil.rmtree(tmp_path / ".cuggino", ignore_errors=True)

        loop = drawn(
            tmp_path, t, "c|", "a-d|", commands={"check": [of(b"fine").pipe(ops.do_action(remove))]}
        )
        error = t.record(loop.run(check_command="check"))[-1][2]
        assert isinstance(error, StorageError)


class TestDisposal:
    """Disposal at any point leaves no process and no file."""

    @pytest.mark.parametrize("phase", ["planning", "implementing", "reviewing"])
    def test_while_an_agent_works(self, tmp_path: Path, phase: str) -> None:
        """The agent is released at once, the session files are gone, the workspace is free."""
        t = marbles()
        streams = {"planning": "c|", "implementing": "d|", "reviewing": "y|", phase: "-a-----"}
        drawn = {role: t.cold(diagram) for role, diagram in streams.items()}
        loop = CodingLoop(
            tmp_path,
            planning=[drawn["planning"]],
            implementing=[drawn["implementing"]],
            reviewing=[drawn["reviewing"]],
        )
        with no_leaks():
            seen = t.record(loop.run(), dispose_at=6)
        assert "next" == seen[-1][1]
        assert [6] == [ended for _, ended in drawn[phase].subscriptions]
        loop.assert_released()

    def test_while_an_agent_lingers(self, tmp_path: Path) -> None:
        """Disposed between a marker and the agent's end, the marker is not emitted."""
        t = marbles()
        agent = t.cold("-c-----")
        loop = CodingLoop(tmp_path, planning=[agent])
        t.check(loop.run(), "(IP)", dispose_at=3)
        t.check_subscriptions(agent, "^--!")
        loop.assert_released()

    @pytest.mark.parametrize("name", ["setup", "check"])
    def test_while_a_command_runs(self, tmp_path: Path, name: str) -> None:
        """The command is released, its output file is closed and removed."""
        t = marbles(b=b"line")
        streams = {"setup": t.cold("|"), "check": t.cold("|"), name: t.cold("b-------")}
        loop = drawn(
            tmp_path, t, "c|", "d|", commands={kind: [stream] for kind, stream in streams.items()}
        )
        with no_leaks():
            t.record(loop.run(setup_command="setup", check_command="check"), dispose_at=5)
        assert [5] == [ended for _, ended in streams[name].subscriptions]
        loop.assert_released()

    def test_while_a_commit_runs(self, tmp_path: Path) -> None:
        """The commit is released."""
        t = marbles()
        commit = t.cold("-------")
        loop = drawn(tmp_path, t, "c|", "d|", commits=[commit])
        t.check(loop.run(commit=True), "(IP)(CM)D", dispose_at=5)
        t.check_subscriptions(commit, "--^--!")
        loop.assert_released()

    def test_by_an_exception_of_the_subscriber(self, tmp_path: Path) -> None:
        """An exception in `on_next` releases the agent and reaches `on_error`."""
        t = marbles()
        agent = t.cold("a-----")
        loop = CodingLoop(tmp_path, planning=[agent])
        errors: list[Exception] = []

        def refuse(event: Event) -> None:
            if isinstance(event, AgentMessage):
                raise ZeroDivisionError

        loop.run().subscribe(refuse, errors.append, scheduler=t.scheduler)
        t.scheduler.advance_to(9)
        assert [ZeroDivisionError] == [type(error) for error in errors]
        t.check_subscriptions(agent, "(^!)")
        loop.assert_released()

    def test_by_taking_enough(self, tmp_path: Path) -> None:
        """A loop disposed in its first instant runs nothing in the next one."""
        t = marbles()
        agent = t.cold("a-----")
        loop = CodingLoop(tmp_path, planning=[agent])
        t.check(loop.run().pipe(ops.take(1)), "(I|)")
        assert all(ended == 0 for _, ended in agent.subscriptions)
        loop.assert_released()

    def test_a_loop_may_run_again(self, tmp_path: Path) -> None:
        """Each subscription is a separate run with a separate session."""
        t = marbles()
        loop = CodingLoop(tmp_path, planning=[t.cold("i|"), t.cold("i|")])
        stream = loop.run()
        for _ in range(2):
            assert tags(t.record(stream, until=t.now + 9)).endswith("LoopSpecIssue")
        first, second = (o.env["CUGGINO_SESSION_FILE"] for o in loop.agent.spawned)
        assert first < second
        loop.assert_released()
