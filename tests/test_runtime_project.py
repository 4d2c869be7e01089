"""Reports of a runtime on its project, without the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from reactivex import operators as ops

from cuggino import Runtime, programs, run
from cuggino.agents import RoutedAgent
from cuggino.agents.scripted import ScriptedAgent
from cuggino.config import Config, FallbackAgent, save_config
from cuggino.errors import RunNotFound
from cuggino.events import ToolCall
from cuggino.runs import RecordedRun, Runs, UnreadableRun
from cuggino.testing import InMemoryAgent
from tests.cli.recorded_runs import APPROVED, ONE, SAID, TWO, record


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    (tmp_path / ".specs").mkdir()
    (tmp_path / ".specs" / "a.md").write_text("# A\n")
    (tmp_path / "scenario.toml").write_text('[[planning]]\nsteps = [{ say = "hello" }]\n')
    save_config(tmp_path, Config(agent="scripted:scenario.toml"))
    return Runtime.live(cwd=tmp_path)


def test_runs(runtime: Runtime) -> None:
    """Runs come newest first, including an unreadable journal."""
    record(runtime.cwd, ONE, *SAID, *APPROVED)
    record(runtime.cwd, TWO).write_text("x\ny\n")
    broken, approved = run(runtime.runs().pipe(ops.to_list())) or []
    assert isinstance(broken, UnreadableRun)
    assert "line 1 is broken" in broken.error.message
    assert isinstance(approved, RecordedRun)
    assert (ONE, "0193b2c1", "approved") == (approved.id, approved.short_id, approved.state)
    assert approved.resume_command is None


def test_replay(runtime: Runtime) -> None:
    """The latest run, or the one with the id, is emitted again without entries of the journal."""
    record(runtime.cwd, ONE, *SAID, *APPROVED)
    emitted = [event for _, _, event in [*SAID, *APPROVED] if not event.tag.startswith(JOURNAL)]
    assert emitted == run(runtime.replay().pipe(ops.to_list()))
    assert emitted == run(runtime.replay("0193").pipe(ops.to_list()))
    with pytest.raises(RunNotFound, match="there is no run '7'"):
        run(runtime.replay("7"))


JOURNAL = ("Stage", "RunEnded")
"""Prefixes of the tags of events that only the journal has."""


def test_ambiguous_id_lists_five_runs(tmp_path: Path) -> None:
    """An error about an ambiguous id names the newest runs, not all of them."""
    names = [f"0193b2c1-{number}" for number in range(7)]
    for name in names:
        record(tmp_path, name)
    with pytest.raises(RunNotFound) as error:
        Runs(tmp_path).find("0193")
    newest = ", ".join(reversed(names[2:]))
    assert f"7 runs begin with '0193': {newest}, ..." == error.value.message


def test_doctor(runtime: Runtime) -> None:
    """Every check emits a result with a status."""
    (runtime.cwd / ".specs" / "a.md").unlink()
    results = run(runtime.doctor().pipe(ops.to_list())) or []
    topics = {result.what.partition(":")[0]: result.status for result in results}
    assert "ok" == topics["configuration"]
    assert "problem" == topics["specs"]


def test_guard_audit(runtime: Runtime) -> None:
    """Every tool call of a run is emitted with the role that made it and a verdict."""
    calls = [
        ToolCall(name="Write", input={"file_path": name, "content": "x"})
        for name in ("src/a.py", f".cuggino/wip/{ONE}.planning/plan.md")
    ]
    record(runtime.cwd, ONE, *((1, "planning#1", call) for call in calls))
    denied, allowed = run(runtime.guard_audit().pipe(ops.to_list())) or []
    assert ("planning", calls[0], False) == (denied.role, denied.call, denied.verdict.is_allowed)
    assert (calls[1], True) == (allowed.call, allowed.verdict.is_allowed)


def test_plan_session(runtime: Runtime) -> None:
    """The session is prepared with the prompt and the policy of a project manager."""
    session = runtime.plan_session()
    assert runtime.cwd == session.options.cwd
    assert ".cuggino/backlog" in (session.options.system_prompt or "")
    assert session.options.guard is not None
    assert not session.workspace.folder.exists(), "nothing is written before it runs"


def test_plan_session_of_several_agents(tmp_path: Path) -> None:
    """Of an agent with fallbacks, the first one is the project manager."""
    for name in ("first.toml", "second.toml"):
        (tmp_path / name).write_text('[[planning]]\nsteps = [{ say = "hello" }]\n')
    config = Config(
        agent="scripted:first.toml", fallback=[FallbackAgent(agent="scripted:second.toml")]
    )
    runtime = Runtime.live(cwd=tmp_path, config=config)
    session = runtime.plan_session()
    assert isinstance(runtime.agent, RoutedAgent)
    assert isinstance(session.agent, ScriptedAgent)


def test_run_of_a_plan_session(tmp_path: Path) -> None:
    """The workspace is there for the session, and its code is the agent's."""
    session = Runtime.live(cwd=tmp_path, agent=InMemoryAgent({})).plan_session()
    assert 0 == session.run()
    assert session.workspace.backlog.is_dir()


def test_talk_of_a_plan_session(runtime: Runtime) -> None:
    """The programs beside its agent are there before a message, which may come hours later."""
    programs._copy.cache_clear()
    runtime.plan_session().talk()
    assert 1 == programs._copy.cache_info().currsize
