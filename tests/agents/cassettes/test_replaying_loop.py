"""A coding loop recorded once and replayed until a prompt or a policy changes."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import cuggino
from cuggino import Config, Runtime
from cuggino.agents.cassettes import ReplayAgent, record_to
from cuggino.agents.scripted import ScriptedAgent
from cuggino.agents.scripted.scenario import Scenario, load_scenario
from cuggino.config import load_config
from cuggino.errors import ReplayDiverged
from cuggino.events import Event, LoopApproved, SandboxChosen
from cuggino.testing import replay
from cuggino_cli.commands.demo import _DEMO, _FOCUS, make_project
from tests.agents.cassettes.recorded import sessions
from tests.git_project import GitProject

pytestmark = pytest.mark.usefixtures("nothing_is_left")

SCENARIO = load_scenario(_DEMO / "scenario.toml").model_copy(update={"pause": 0.0})


def play(runtime: Runtime, focus: str = _FOCUS) -> list[str]:
    """Run the loop and return the tags of its events, without the sandbox that replays lack."""
    events: list[Event] = []
    cuggino.run(runtime.run(focus=focus), events.append)
    return [event.tag for event in events if not isinstance(event, SandboxChosen)]


def quick(folder: Path, **changes: Any) -> Config:
    """Return the project's configuration without its slow command."""
    return load_config(folder).model_copy(update={"setup_command": None, **changes})


class Recorded:
    """The recorded demo, and projects to replay it in."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = folder / "demo.jsonl"
        self.project = self.new()
        self.tags = play(
            Runtime.live(
                cwd=self.project,
                config=quick(self.project),
                agent=ScriptedAgent(SCENARIO),
                record=self.path,
            )
        )

    def new(self) -> Path:
        number = sum(1 for _ in self._folder.iterdir())
        return make_project(str(self._folder / f"project-{number}"))

    def runtime(self, project: Path, **changes: Any) -> Runtime:
        return Runtime.live(
            cwd=project, config=quick(project, **changes), agent=f"replay:{self.path}"
        )


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded(tmp_path_factory.mktemp("recorded"))


def state(project: Path) -> tuple[dict[str, str], list[str]]:
    """Return the committed files with their texts, and the subjects of the commits."""
    git = GitProject(project)
    files = {name: (project / name).read_text() for name in git.committed()}
    assert "?? .cuggino/\n" == git.git("status", "--porcelain")
    return files, git.git("log", "--format=%s").splitlines()


@pytest.mark.real_agent
def test_a_replay_equals_its_recording(demo: Recorded) -> None:
    """A replayed run emits the same events and leaves the same files and commits."""
    project = demo.new()
    runtime = demo.runtime(project)
    assert demo.tags == play(runtime)
    assert "LoopApproved" == demo.tags[-1]
    assert state(demo.project) == state(project)
    assert 4 == len(state(project)[1])
    assert isinstance(runtime.agent, ReplayAgent)
    assert () == runtime.agent.unplayed


@pytest.mark.real_agent
def test_cassettes_in_the_project(demo: Recorded) -> None:
    """A cassette inside the project, read or made, is not committed, and names no folder of it."""
    project = demo.new()
    shutil.copy(demo.path, project / "here.jsonl")
    runtime = Runtime.live(
        cwd=project, config=quick(project), agent="replay:here.jsonl", record="new.jsonl"
    )
    assert demo.tags == play(runtime)
    listed = GitProject(project).git("status", "--porcelain")
    assert "?? .cuggino/\n?? here.jsonl\n?? new.jsonl\n" == listed
    text = (project / "new.jsonl").read_text()
    assert str(project) not in text
    assert 7 == len(sessions(project / "new.jsonl"))


STEPS = [
    {"write": ".specs/new.md", "text": "x"},
    {"run": "cd sub && echo x > ../.specs/y.md"},
    {"run": '"$CUGGINO_PYTHON" -c pass'},
    {"say": "<SPEC_ISSUE>\nno\n</SPEC_ISSUE>"},
]


class OneSession:
    """A run of one session that was recorded, and what is the same run otherwise."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        scenario = Scenario.model_validate({"planning": [{"steps": STEPS}]})
        self.tags = self.play(ScriptedAgent(scenario))

    def play(self, agent: ScriptedAgent | None = None, focus: str = "x", **changed: Any) -> Any:
        project = make_project(str(self._folder / f"p{sum(1 for _ in self._folder.iterdir())}"))
        (project / "sub").mkdir()
        record = self._folder / "c"
        config = quick(project, **{"sandbox": False, "check_command": "true", **changed})
        runtime = Runtime.live(
            cwd=project,
            config=config,
            agent=agent or f"replay:{record}",
            record=record if agent else None,
        )
        return play(runtime, focus)


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> OneSession:
    return OneSession(tmp_path_factory.mktemp("one"))


def test_an_unchanged_policy(one: OneSession) -> None:
    """A replay under the same policy equals its recording, denials included."""
    assert 2 == one.tags.count("GuardDenied")
    assert one.tags == one.play()


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"focus": "something else"}, "of session 1 (planning 1) differs in line"),
        (
            {"guard": "full", "profile": ["node"]},
            'in session 1 (planning 1), Bash `"$CUGGINO_PYTHON" -c pass` ran in the recording, '
            "and is denied now: ",
        ),
        (
            {"guard": "off"},
            "Write `.specs/new.md` was denied in the recording, and is allowed now",
        ),
    ],
    ids=["another focus", "a stricter policy", "a looser policy"],
)
def test_what_diverges(one: OneSession, changed: dict[str, Any], told: str) -> None:
    """Another prompt diverges, and so does a call that is judged otherwise now."""
    with pytest.raises(ReplayDiverged, match=re.escape(told)):
        one.play(**changed)


@pytest.mark.real_agent
def test_the_testing_helper(demo: Recorded) -> None:
    """`cuggino.testing.replay` returns the events of the whole run and fails if sessions remain."""
    project = demo.new()
    config = quick(project)
    events = replay(
        demo.path, lambda runtime: runtime.run(focus=_FOCUS), cwd=project, config=config
    )
    assert demo.tags == [event.tag for event in events]
    project = demo.new()
    short = quick(project, max_iterations=1)
    with pytest.raises(AssertionError, match="the recording has more: session 5"):
        replay(demo.path, lambda runtime: runtime.run(focus=_FOCUS), cwd=project, config=short)


@pytest.mark.real_agent
def test_a_replay_can_be_recorded(demo: Recorded, tmp_path: Path) -> None:
    """The recording of a replay plays like the original."""
    project = demo.new()
    agent = f"replay:{demo.path}"
    second = tmp_path / "second.jsonl"
    play(Runtime.live(cwd=project, config=quick(project), agent=agent, record=second))
    third = demo.new()
    runtime = Runtime.live(cwd=third, config=quick(third), agent=f"replay:{second}")
    assert demo.tags == play(runtime)
    assert state(project) == state(third)


def test_without_a_runtime(tmp_path: Path) -> None:
    """An agent can be recorded and replayed without a runtime."""
    scenario = Scenario.model_validate({"coding": [{"steps": [{"write": "a", "text": "x"}]}]})
    options = cuggino.SpawnOptions(prompt="Go.", cwd=tmp_path, role="coding")
    cuggino.run(record_to(tmp_path / "c", ScriptedAgent(scenario)).spawn(options))
    (tmp_path / "a").unlink()
    cuggino.run(cuggino.make_agent("replay:c", cwd=tmp_path).spawn(options))
    assert "x" == (tmp_path / "a").read_text()
    assert LoopApproved.__name__ not in (tmp_path / "c").read_text()
