"""The coding loop with the real Claude Code CLI, recorded once and replayed without it."""

from __future__ import annotations

from pathlib import Path

import pytest
from reactivex import Observable

import cuggino
from cuggino import Runtime
from cuggino.agents.cassettes import record_to, replay_of
from cuggino.agents.claude import ClaudeAgent
from cuggino.config import load_config
from cuggino.errors import ReplayDiverged
from cuggino.events import GuardDenied, LlmAgentEvent, MessageDelta, SessionEnded
from cuggino_cli.commands.demo import make_project
from tests.agents.cassettes.recorded import options
from tests.loops.demo import FOCUS, SCENARIO, agent_env, play
from tests.loops.scenario_model import scenario_model
from tests.model_server import Message, ModelServer, Text, Tool
from tests.real_claude import Claude, bash

pytestmark = pytest.mark.real_agent

SHORT = SCENARIO.model_copy(
    update={
        "planning": SCENARIO.planning[:1],
        "implementing": SCENARIO.implementing[:2],
        "reviewing": SCENARIO.reviewing[1:],
    }
)
"""The first iteration of the demo, approved immediately."""


@pytest.mark.usefixtures("nothing_is_left")
def test_the_demo_without_the_program(claude_cli: Path, tmp_path: Path) -> None:
    """Replaying a real run without the program yields the same events, files and commits.

    Both runs have the same policy; with another one the replay diverges.
    """
    cassette = tmp_path / "claude.jsonl"
    folder, there = (make_project(str(tmp_path / name)) for name in ("demo", "there"))
    with ModelServer(scenario_model(SHORT, folder)) as server:
        agent = ClaudeAgent(path=claude_cli, env=agent_env(tmp_path / "home", server))
        recorded = play(folder, record_to(cassette, agent))
    replay = replay_of(cassette)
    played = play(there, replay)

    chosen, *recorded_tags = [event.tag for event in recorded.events]
    assert "SandboxChosen" == chosen  # replays run nothing that could be confined
    assert recorded_tags == [event.tag for event in played.events]
    assert recorded.story[1:] == played.story
    assert recorded.files == played.files
    assert recorded.subjects == played.subjects
    assert [s.cost_usd for s in recorded.sessions] == [s.cost_usd for s in played.sessions]
    assert () == replay.unplayed
    assert replay.check().startswith("claude 2.")
    assert str(folder) not in cassette.read_text(encoding="utf-8")
    assert any(isinstance(event, MessageDelta) for event in recorded.events) is any(
        isinstance(event, MessageDelta) for event in played.events
    )

    third = make_project(str(tmp_path / "third"))
    config = load_config(third).model_copy(update={"guard": "full", "profile": ["node"]})
    runtime = Runtime.live(cwd=third, config=config, agent=replay_of(cassette))
    with pytest.raises(ReplayDiverged, match="ran in the recording, and is denied now"):
        cuggino.run(runtime.run(focus=FOCUS))


@pytest.mark.usefixtures("nothing_is_left")
def test_a_denied_call(claude: Claude, tmp_path: Path) -> None:
    """A denied call is denied in the replay, and calls allowed elsewhere stay allowed.

    The last command runs in a folder that the recording does not contain.
    """
    cassette = tmp_path / "c.jsonl"
    secret = "ghp_" + "a1B2" * 9
    turns = [
        bash(f"echo {secret} > new.txt; mkdir sub"),
        bash("echo x > .specs/task.md"),
        bash("cd sub && pwd"),
        bash("mkdir .specs && echo x > .specs/task.md"),
        Tool("Write", {"file_path": claude.path("made.txt"), "content": "made\n"}),
    ]
    script = [*(Message([turn]) for turn in turns), Message([Text(f"It is {secret}.")])]
    with ModelServer(lambda request: script[request.turns]) as server:
        agent = ClaudeAgent(path=claude.program, env=agent_env(claude.home, server))
        given = options(
            claude.project, dangerously_skip_permissions=True, guard=claude.policy(), turn=None
        )
        recorded = events_of(record_to(cassette, agent).spawn(given))
    (claude.project / "made.txt").unlink()
    played = events_of(replay_of(cassette).spawn(given))
    assert [event.tag for event in recorded] == [event.tag for event in played]
    assert 1 == sum(isinstance(event, GuardDenied) for event in played)
    assert isinstance(played[-1], SessionEnded)
    assert ("made\n", "x\n") == (claude.read("made.txt"), claude.read("sub/.specs/task.md"))
    assert secret not in cassette.read_text(encoding="utf-8")
    assert "⟦masked github token⟧\n" == claude.read("new.txt")


def events_of(stream: Observable[LlmAgentEvent]) -> list[LlmAgentEvent]:
    events: list[LlmAgentEvent] = []
    cuggino.run(stream, events.append)
    return events
