"""The demo and the coding loop with real programs: the story of the scripted agent."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

import cuggino
from cuggino import Config, SpawnOptions, events as ev
from cuggino.agents import Candidate, RoutedAgent
from cuggino.agents.claude import ClaudeAgent
from cuggino.agents.scripted import ScriptedAgent
from cuggino.events import GuardDenied, LoopApproved, ToolResult
from cuggino.operators import marker_tags
from cuggino.processes import process_lines
from cuggino.stages import agent_stage, role_markers
from cuggino.testing import no_leaks
from cuggino_cli.commands.demo import make_project
from tests.limits import LIMIT
from tests.loops.demo import FOCUS, SCENARIO, Played, agent_env, play
from tests.loops.endings import RUN_TOOL, Endings, Project
from tests.loops.scenario_model import ROLES, scenario_model
from tests.model_script import ModelRequest
from tests.model_server import Message, ModelServer, RoleScript, Text, Tool
from tests.real_acp import Kimi, Qwen
from tests.real_claude import Claude, needs_sandbox
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


@pytest.mark.usefixtures("nothing_is_left")
@pytest.mark.parametrize("kind", [Claude, Copilot], ids=lambda kind: kind.__name__)
def test_demo_by_the_command_line(
    kind: type[RealProgram], request: pytest.FixtureRequest, tmp_path: Path, expected: Played
) -> None:
    """`cuggino run --json` finds the program, by its path or on PATH, and has the same story."""
    program: Path = request.getfixturevalue(kind.cli)
    folder = make_project(str(tmp_path / "demo"))
    words = ["run", "--focus", FOCUS, "--json"]
    with in_a_project(kind, program, tmp_path) as real:
        script = scenario_model(SCENARIO, folder)
        with real.serve(real.translated(script)) as server:
            if isinstance(real, Copilot):
                env = {**clean_env(real.home, server.url), "CUGGINO_PYTHON": sys.executable}
                env["PATH"] = f"{program.parent}:{env['PATH']}"
                words += ["--agent", "copilot"]
            else:
                env = agent_env(tmp_path / "home", server)
                config = cuggino.load_config(folder)
                given = config.model_copy(update={"agent_path": str(program)})
                cuggino.save_config(folder, given)
                amend = ("commit", "--quiet", "--all", "--amend", "--no-edit")
                subprocess.run(["git", *amend], cwd=folder, check=True, timeout=LIMIT)
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
    played = Played(folder, [ev.parse_event(line) for line in done.stdout.decode().splitlines()])
    assert expected.story == played.story
    assert expected.subjects == played.subjects
    assert expected.files | {".cuggino.json": ""} == played.files | {".cuggino.json": ""}
    assert [] == played.session_files
    if kind is Claude:
        assert sum(ended.cost_usd or 0 for ended in played.sessions) > 0


# -- the coding loop with the real Claude Code CLI on a scripted model


@pytest.mark.usefixtures("nothing_is_left")
def test_an_agent_without_a_marker_is_asked_again(claude_cli: Path, tmp_path: Path) -> None:
    """The same session is asked once more, and each of its two runs reports its own cost."""
    script = RoleScript(
        {"implementing": "."},
        {
            "implementing": [
                [Text("I did it."), Message([Text("<DONE>Add it</DONE>")], output_tokens=300)]
            ]
        },
    )
    events: list[ev.Event] = []
    markers: list[ev.LlmMarkerEvent] = []
    session_id = str(uuid.uuid4())
    with ModelServer(script) as server:
        stage = agent_stage(
            ClaudeAgent(path=claude_cli, env=agent_env(tmp_path / "home", server)),
            SpawnOptions(
                prompt="Do it.",
                cwd=tmp_path,
                system_prompt="You are the one who does it.",
                session_id=session_id,
                role="implementing",
            ),
            phase="implementing",
            tags=marker_tags(*role_markers("implementing")),
            on_marker=markers.append,
        )
        last = cuggino.run(stage, events.append)

    assert isinstance(last, ev.Done)
    assert "Add it" == last.content
    assert [last] == markers
    assert ["I did it."] == [event.text for event in events if isinstance(event, ev.AgentMessage)][
        :1
    ]
    first, second = (event for event in events if isinstance(event, ev.SessionEnded))
    assert (session_id, session_id) == (first.session_id, second.session_id)
    assert first.cost_usd is not None
    assert second.cost_usd is not None
    # Output costs more than input, so thrice the output costs less than thrice, more than once.
    assert 0 < first.cost_usd < second.cost_usd < 3 * first.cost_usd
    again = server.requests[1]
    assert 1 == again.turns
    assert "Do it." in again.messages_text
    assert "You ended without one of the markers of your role" in again.messages_text
    assert "You are the one who does it." in again.system_text


class TestRealEndings(Endings):
    """Endings with the real Claude Code, which runs each Bash call in its own session."""

    SANDBOX: Literal["auto", "off"] = "off"

    @pytest.fixture
    def project(self, claude_cli: Path, tmp_path: Path) -> Iterator[Project]:
        tool = Tool("Bash", {"command": RUN_TOOL, "timeout": 600_000})
        over = Text("<SPEC_ISSUE>The tool has ended.</SPEC_ISSUE>")
        script = RoleScript({"planning": "# Role: planning agent"}, {"planning": [[tool, over]]})
        cuggino.run(process_lines(["true"]))  # the guardian stays, and keeps a pipe
        with no_leaks(within=LIMIT), ModelServer(script) as server:
            env = agent_env(tmp_path / "home", server)
            yield Project.make(
                tmp_path / "project",
                ClaudeAgent(path=claude_cli, env=env),
                Config(agent_path=str(claude_cli), sandbox=self.SANDBOX),
                env=env,
                server=server,
            )


class TestSandboxedEndings(TestRealEndings):
    """The same with each Bash call in a sandbox, which has its own processes."""

    SANDBOX = "auto"

    @pytest.fixture(autouse=True)
    def _sandbox(self) -> None:
        needs_sandbox()
