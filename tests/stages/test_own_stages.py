"""Stages without a loop: no frame, no journal, no lock unless it is asked for."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from reactivex import Observable, merge, of, operators as ops, throw

import cuggino
from cuggino import Config, Runtime, events as ev
from cuggino.agents.scripted import ScriptedAgent
from cuggino.domain import Budget
from cuggino.errors import BudgetExceeded, ConfigError, LoopError, ProcessFailed, WorkspaceLocked
from cuggino.loops import durable
from cuggino.operators import Flow, flow, forward
from cuggino.processes import KeptProcesses
from cuggino.stages import (
    GitSnapshots,
    Workplace,
    audit_stage,
    check_stage,
    commit_stage,
    implementing_stage,
    planning_stage,
    push_stage,
    reviewing_stage,
    setup_stage,
    snapshot_stage,
)
from cuggino.storage import Workspace
from cuggino.testing import AgentRun, InMemoryAgent, Marbles, Say, no_leaks
from tests.git_project import GitProject
from tests.loops.coding_loop import PLAN, says
from tests.stages.own_stages import workplace

PLANNED = AgentRun([Say("<PLAN_COMPLETE>planned</PLAN_COMPLETE>")], plan=PLAN)


def outcome(stage: Observable[Any]) -> Any:
    """Run the stage in virtual time, and return its last event."""
    *_, (_, _, last), (_, kind, error) = Marbles().record(stage)
    assert kind == "completed", error
    return last


def failure(stage: Observable[Any]) -> Any:
    """Run the stage in virtual time, and return its error."""
    _, kind, error = Marbles().record(stage)[-1]
    assert kind == "error"
    return error


@pytest.mark.parametrize(
    "stage",
    [
        planning_stage,
        implementing_stage,
        reviewing_stage,
        audit_stage,
        lambda place: setup_stage(place, "true"),
        lambda place: check_stage(place, "true"),
        lambda place: commit_stage(place, "Greet"),
        lambda place: push_stage(place, "origin/main", "HEAD"),
        lambda place: snapshot_stage(place, "before"),
    ],
)
def test_a_runtime_is_not_a_workplace(stage: Any, tmp_path: Path) -> None:
    """The error says how to make one."""
    with pytest.raises(TypeError, match=r"Workplace, not Runtime: Runtime.workplace\(focus=...\)"):
        cuggino.run(stage(cuggino.Runtime.live(cwd=tmp_path, agent="claude")))


APPROVED: Any = ev.Approved(content="yes")


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        (lambda place: planning_stage(place, review=APPROVED), "review must be a string"),
        (lambda place: implementing_stage(place, check=APPROVED), "check must be a CheckCommand"),
        (
            lambda place: reviewing_stage(place, check=APPROVED),
            "check must be a CheckCommandOutput",
        ),
        (lambda place: setup_stage(place, APPROVED), "command must be a string"),
        (lambda place: check_stage(place, APPROVED), "command must be a string"),
        (lambda place: commit_stage(place, APPROVED), "message must be a string"),
        (lambda place: push_stage(place, APPROVED, "HEAD"), "target must be a string"),
        (lambda place: snapshot_stage(place, APPROVED), "stage must be a string"),
        (lambda place: Runtime.live(cwd=place.options.cwd).workplace(focus=APPROVED), "focus must"),
    ],
)
def test_an_event_is_not_its_text(stage: Any, message: str, tmp_path: Path) -> None:
    """What a stage takes is checked when it is composed, in one sentence."""
    with pytest.raises(TypeError, match=rf"{message}.*, not Approved$"):
        stage(workplace(tmp_path))


@pytest.mark.parametrize("target", ["origin", "origin/", "/main", ""])
def test_a_push_needs_a_remote_and_a_branch(target: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"target must be a remote and a branch.*'{target}'"):
        push_stage(workplace(tmp_path), target, "HEAD")


class TestFiles:
    """The files through which agents hand on their work."""

    def test_a_stage_creates_them(self, tmp_path: Path) -> None:
        """The first stage makes the workspace; the plan becomes the session file."""
        place = workplace(tmp_path, PLANNED)
        assert not place.services.workspace.folder.exists()
        assert ev.PlanComplete(content="planned") == outcome(planning_stage(place))
        assert place.session.session_file.read_text().startswith(PLAN.strip())
        assert (tmp_path / ".cuggino/.gitignore").exists()

    def test_markers_are_appended(self, tmp_path: Path) -> None:
        """What an implementing agent notes is there for the next one."""
        place = workplace(tmp_path, [Say("<NOTE>mind</NOTE>"), Say("<PROGRESS>one</PROGRESS>")])
        outcome(implementing_stage(place))
        assert "<NOTE>\nmind\n</NOTE>" in place.session.session_file.read_text()

    def test_a_held_workplace_leaves_none(self, tmp_path: Path) -> None:
        """Within `held` nobody else may work; at its end the files are removed."""
        approved = [Say("<APPROVED>yes</APPROVED>")]
        agent = InMemoryAgent({"planning": [PLANNED], "reviewing": [approved]})
        place = workplace(tmp_path, agent=agent)
        with place.held(command="mine"):
            with pytest.raises(WorkspaceLocked, match="mine"), Workspace(tmp_path).lock():
                pass
            outcome(planning_stage(place))
            outcome(reviewing_stage(place.reviewers(2)[1]))
            assert place.session.session_file.exists()
        assert [] == list(place.services.workspace.wip.iterdir())
        with Workspace(tmp_path).lock():
            pass


class TestNamedSessions:
    """Sessions that a later process continues."""

    def test_a_durable_loop_keeps_its_plan(self, tmp_path: Path) -> None:
        """The implementing agent of the next process reads what was planned before."""
        t = Marbles(d=says("DONE", "all"), D=ev.Done(content="all"), P=ev.PlanComplete(content="p"))
        planned = AgentRun([Say("<PLAN_COMPLETE>p</PLAN_COMPLETE>")], plan=PLAN)

        def process(*implementing: Any) -> tuple[Workplace, Observable[Any]]:
            agent = InMemoryAgent({"planning": [planned], "implementing": implementing})
            place = workplace(tmp_path, agent=agent, session="page")

            def story() -> Flow[None]:
                with place.held():
                    yield from forward(planning_stage(place))
                    yield from forward(implementing_stage(place))

            return place, durable(story, tmp_path / "loop.jsonl")

        place, first = process(t.cold("-----d|"))
        assert [ev.PlanComplete(content="p")] == [
            event for _, _, event in t.record(first, dispose_at=3) if event is not None
        ]
        place, second = process(t.cold("-d|"))
        assert place.session.session_file.read_text().startswith(PLAN.strip())
        assert ev.Done(content="all") == outcome(second)
        assert [] == list(place.services.workspace.wip.iterdir())

    @pytest.mark.parametrize("name", ["", "../up", "a b", "a.b"])
    def test_a_name_is_one_of_a_file(self, name: str, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="cannot be the name of a session"):
            workplace(tmp_path, session=name)


class TestReviewers:
    """Reviewers that work at the same time."""

    def test_each_has_its_review(self, tmp_path: Path) -> None:
        """Both run at once, and neither review replaces the other or counts as a violation."""
        t = Marbles(
            y=says("APPROVED", "yes"),
            r=says("REQUEST_CHANGES", "redo"),
            Y=ev.Approved(content="yes"),
            R=ev.RequestChanges(content="redo"),
        )
        streams = t.cold("--r-|"), t.cold("---y|")
        place = workplace(
            tmp_path,
            AgentRun(streams[0], review="first"),
            AgentRun(streams[1], review="No findings."),
        )
        one, two = place.reviewers(2)
        reviews = merge(reviewing_stage(one), reviewing_stage(two))
        t.check(reviews, "----(RY|)")
        assert ["first", "No findings."] == [
            each.session.review_file.read_text() for each in (one, two)
        ]
        assert one.session.session_file == two.session.session_file
        assert one.session.review_file == place.session.review_file


class TestCommands:
    """The setup and check commands."""

    def test_none_without_a_command(self, tmp_path: Path) -> None:
        """A project without these commands has stages that emit nothing."""
        place = workplace(tmp_path)
        for stage in (setup_stage(place, None), check_stage(place, "")):
            assert [(0, "completed", None)] == Marbles().record(stage)

    def test_their_exit_codes(self, tmp_path: Path) -> None:
        """A failure is an outcome; for a strict setup it is an error."""
        place = workplace(tmp_path, shell=lambda *_: throw(ProcessFailed("sh", 3, "")))
        check, setup = outcome(check_stage(place, "make")), outcome(setup_stage(place, "make"))
        assert isinstance(check, ev.CheckCommandOutput)
        assert isinstance(setup, ev.SetupCommandOutput)
        assert 3 == check.exit_code == setup.exit_code
        assert not place.services.workspace.knows_setup("make")
        assert isinstance(failure(setup_stage(place, "make", strict=True)), LoopError)

    def test_a_setup_that_has_succeeded_is_remembered(self, tmp_path: Path) -> None:
        """The next first setup of the project gets a view, as agents may have changed it."""
        place = workplace(tmp_path, shell=lambda *_: of(b"made\n"))
        outcome(setup_stage(place, "make"))
        assert place.services.workspace.knows_setup("make")

    def test_a_check_may_not_write_hooks(self, project: GitProject) -> None:
        """It runs what agents have written."""
        config, agent = Config(sandbox="off"), InMemoryAgent({})
        place = Runtime.live(cwd=project.root, config=config, agent=agent).workplace(focus="x")
        hook = project.root / ".git/hooks/post-merge"
        stage = check_stage(place, f"mkdir -p {hook.parent} && date +%N > {hook}")
        _, violated, checked = cuggino.iterate(stage)
        assert isinstance(violated, ev.RoleViolated)
        assert isinstance(checked, ev.CheckCommandOutput)
        assert not hook.exists()

    def test_only_the_first_setup_may_write_hooks(self, project: GitProject) -> None:
        """It is the user's own as long as no agent can have changed what it runs."""
        config, agent = Config(sandbox="off"), InMemoryAgent({})
        place = Runtime.live(cwd=project.root, config=config, agent=agent).workplace(focus="x")
        hook = project.root / ".git/hooks/post-merge"
        command = f"mkdir -p {hook.parent} && date +%N > {hook}"
        violated = [
            any(isinstance(event, ev.RoleViolated) for event in cuggino.iterate(stage))
            for stage in (
                setup_stage(place, f"{command}; exit 1", is_first=True),
                setup_stage(place, command, is_first=True),
                setup_stage(place, command, is_first=True),
                setup_stage(place, f"{command} 2>&1"),
            )
        ]
        assert [False, False, True, True] == violated

    @pytest.mark.real_agent
    @pytest.mark.parametrize("keeps", [False, True])
    def test_what_a_setup_leaves_running(self, keeps: bool, tmp_path: Path) -> None:
        """Services end with the command, or with `kept.end()` if they are kept."""
        place, kept = workplace(tmp_path), KeptProcesses()
        service = ["sleep", f"300.{os.getpid()}"]
        with no_leaks():
            try:
                command = f"{' '.join(service)} > /dev/null 2>&1 &"
                cuggino.run(setup_stage(place, command, kept=kept if keeps else None))
                running = [process.info["cmdline"] for process in psutil.process_iter(["cmdline"])]
                assert keeps is (service in running)
            finally:
                kept.end()


class TestSnapshots:
    """Snapshots of the project."""

    def test_it_has_the_name_of_the_stage(self, project: GitProject) -> None:
        """It is kept under the session's id."""
        project.write("a.txt")
        snapshots = GitSnapshots(project.root, project.root / ".cuggino/snapshots")
        place = workplace(project.root, snapshots=snapshots)
        taken = cuggino.run(snapshot_stage(place, "before-review"))
        assert isinstance(taken, ev.SnapshotTaken)
        assert f"refs/cuggino/snapshots/{place.session.id}/before-review" == taken.ref


class TestHooks:
    """Hooks of git that change files without permission."""

    @pytest.mark.parametrize("exit_code", [0, 1])
    def test_the_outcome_is_the_last_event(
        self, project: GitProject, tmp_path: Path, exit_code: int
    ) -> None:
        """Also that of a commit or a push that a hook rejects: loops act on it."""
        project.write("a.txt")
        project.git("init", "-q", "--bare", str(tmp_path / "remote.git"))
        project.git("remote", "add", "origin", str(tmp_path / "remote.git"))
        config, agent = Config(sandbox="off"), InMemoryAgent({})
        place = Runtime.live(cwd=project.root, config=config, agent=agent).workplace(focus="x")
        changes = f"date +%N > .git/hooks/post-merge; exit {exit_code}"
        project.hook("pre-commit", changes)
        *_, violated, committed = cuggino.iterate(commit_stage(place, "Add a.txt"))
        assert isinstance(violated, ev.RoleViolated)
        assert isinstance(committed, ev.CommitFailed if exit_code else ev.CommitPerformed)
        (project.root / ".git/hooks/pre-commit").unlink()
        project.git("commit", "-q", "--allow-empty", "-m", "Something to push")
        project.hook("pre-push", changes)
        *_, violated, pushed = cuggino.iterate(push_stage(place, "origin/main", "HEAD"))
        assert isinstance(violated, ev.RoleViolated)
        assert isinstance(pushed, ev.PushFailed if exit_code else ev.PushPerformed)


class TestEndings:
    """Errors and disposal."""

    def test_specifications_that_are_gone(self, tmp_path: Path) -> None:
        """No agent is started without them."""
        place = workplace(tmp_path, PLANNED)
        (tmp_path / ".specs").rmdir()
        assert isinstance(failure(planning_stage(place)), ConfigError)
        assert [] == place.services.agent.spawned  # type: ignore[attr-defined]

    def test_an_audit_beyond_the_budget(self, tmp_path: Path) -> None:
        """The budget of all agents is spent, so this is no failure of the audit alone."""
        session = [Say("hm"), ev.SessionEnded(outcome="completed", cost_usd=2.0)]
        place = workplace(tmp_path, session, session)
        limited = replace(place.supervision, budget=Budget(cost_usd=1.0))
        audit = audit_stage(replace(place, supervision=limited))
        assert isinstance(failure(audit.pipe(ops.repeat(2))), BudgetExceeded)

    def test_an_agent_without_a_marker(self, tmp_path: Path) -> None:
        """It is the error of its stage, which another stage of the flow can follow."""
        done = [Say("<DONE>all</DONE>")]
        agent = InMemoryAgent({"planning": [[Say("hm")]], "implementing": [done]})
        place = workplace(tmp_path, agent=agent)

        def story() -> Flow[None]:
            try:
                yield from forward(planning_stage(place))
            except LoopError as error:
                assert "planning" in error.message
            yield from forward(implementing_stage(place))

        assert ev.Done(content="all") == outcome(flow(story))

    @pytest.mark.real_agent
    def test_disposal_terminates_the_agent(self, tmp_path: Path) -> None:
        """Without a frame, too, nothing of an agent is left when its stage is disposed."""
        scenario = tmp_path / "scenario.toml"
        scenario.write_text(
            "[[implementing]]\n"
            "[[implementing.steps]]\nsay = 'I begin.'\n"
            "[[implementing.steps]]\nrun = 'sleep 300'\n"
        )
        place = workplace(tmp_path, agent=ScriptedAgent(scenario))
        said: list[ev.Event] = []
        with no_leaks():
            until: Any = ops.take_while(lambda event: not isinstance(event, ev.AgentMessage))
            cuggino.run(implementing_stage(place).pipe(ops.do_action(said.append), until))
        assert any(isinstance(event, ev.AgentMessage) for event in said)
