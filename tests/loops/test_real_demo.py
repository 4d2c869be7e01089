"""The demo with every real program: the same story as with the scripted agent."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuggino.agents import Candidate, RoutedAgent
from cuggino.agents.scripted import ScriptedAgent
from cuggino.events import GuardDenied, LoopApproved, ToolResult, parse_event
from cuggino_cli.commands.demo import make_project
from tests.limits import LIMIT
from tests.loops.demo import FOCUS, SCENARIO, Played, play
from tests.loops.scenario_model import ROLES, scenario_model
from tests.model_script import ModelRequest
from tests.real_acp import Kimi, Qwen
from tests.real_claude import Claude
from tests.real_codex import MODEL, Codex
from tests.real_copilot import Copilot, clean_env
from tests.real_gemini import MODEL as GEMINI_MODEL, Gemini
from tests.real_opencode import OpenCode
from tests.real_program import RealProgram, in_a_project

pytestmark = pytest.mark.real_agent

PROGRAMS = (Claude, Codex, Copilot, Gemini, Kimi, OpenCode)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Return the demo as the scripted agent plays it."""
    folder = make_project(str(tmp_path_factory.mktemp("scripted") / "demo"))
    return play(folder, ScriptedAgent(SCENARIO))


@pytest.fixture(params=PROGRAMS, ids=lambda kind: kind.__name__)
def real(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RealProgram]:
    """Provide each program in turn."""
    kind: type[RealProgram] = request.param
    with in_a_project(kind, request.getfixturevalue(kind.cli), tmp_path) as made:
        yield made


def test_demo(real: RealProgram, tmp_path: Path, expected: Played) -> None:
    """A guarded run has the same story, files and commits; nothing is denied, nothing fails."""
    folder = make_project(str(tmp_path / "demo"))
    env = {"CUGGINO_PYTHON": sys.executable, "GEMINI_MODEL": GEMINI_MODEL}
    if isinstance(real, Codex):
        real.configure(f'model = "{MODEL}"\n')
    with real.serve(real.translated(scenario_model(SCENARIO, folder))) as server:
        agent = real.agent(server.url, env)
        played = play(folder, agent)
    is_counted = agent.capabilities.cost != "none"
    told = [told for told in expected.story if is_counted or told[0] != "StageCost"]
    assert told == played.story
    assert expected.files == played.files
    assert {"convert.py", "temperature.py", "test_temperature.py"} < played.files.keys()
    assert expected.subjects == played.subjects
    assert 1 + 3 == len(played.subjects)
    assert isinstance(played.events[-1], LoopApproved)
    assert [] == [event for event in played.events if isinstance(event, GuardDenied)]
    results = [event for event in played.events if isinstance(event, ToolResult)]
    assert 15 == len(results)
    assert [] == [result for result in results if result.is_error]
    assert ["completed"] * 7 == [ended.outcome for ended in played.sessions]
    assert [] == played.session_files
    if isinstance(real, Claude):
        assert min(ended.cost_usd or 0 for ended in played.sessions) > 0
        for role in ROLES:
            begun = [r for r in server.requests if _is_of(role, r) and r.turns == 0]
            assert len(SCENARIO.runs(role)) == len(begun)
            assert FOCUS in begun[0].system_text or role == "implementing"


def test_two_agents(qwen: Qwen, claude: Claude, tmp_path: Path, expected: Played) -> None:
    """Qwen Code implements and Claude Code reviews: the same story, files and commits."""
    folder = make_project(str(tmp_path / "demo"))
    env = {"CUGGINO_PYTHON": sys.executable}
    script = scenario_model(SCENARIO, folder)
    with (
        qwen.serve(qwen.translated(script)) as writes,
        claude.serve(claude.translated(script)) as reviews,
    ):
        both = [
            Candidate(agent=qwen.agent(writes.url, env), name="qwen"),
            Candidate(agent=claude.agent(reviews.url, env), name="claude"),
        ]
        played = play(folder, RoutedAgent(both[:1], {"reviewing": both[1:]}))
    assert expected.story == played.story
    assert expected.files == played.files
    assert expected.subjects == played.subjects
    assert all("# Role: reviewing agent" in request.system_text for request in reviews.requests)
    assert (True, True) == (bool(writes.requests), bool(reviews.requests))


def _is_of(role: str, request: ModelRequest) -> bool:
    return f"# Role: {role} agent" in request.system_text


def test_demo_by_the_command_line(copilot: Copilot, tmp_path: Path, expected: Played) -> None:
    """`cuggino run --agent copilot` finds the program on PATH and has the same story."""
    folder = make_project(str(tmp_path / "demo"))
    with copilot.serve(copilot.translated(scenario_model(SCENARIO, folder))) as server:
        env = {**clean_env(copilot.home, server.url), "CUGGINO_PYTHON": sys.executable}
        env["PATH"] = f"{copilot.program.parent}:{env['PATH']}"
        words = ["run", "--agent", "copilot", "--focus", FOCUS, "--json"]
        done = subprocess.run(
            [sys.executable, "-m", "cuggino_cli", *words],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIMIT,
            check=False,
        )
    assert (0, b"") == (done.returncode, done.stderr)
    played = Played(folder, [parse_event(line) for line in done.stdout.decode().splitlines()])
    assert expected.story == played.story
    assert expected.subjects == played.subjects
