"""Commands from another terminal to a run in a separate process, once of the real Claude Code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuggino.agents.scripted.scenario import load_scenario
from cuggino.events import ControlIgnored, PauseEnded, Steered, WatchItemParked
from cuggino_cli.commands.steer import _LATER
from tests.cli.commanded import Commanded
from tests.git_project import GitProject, isolate_git
from tests.limits import LIMIT
from tests.loops.demo import agent_env
from tests.loops.scenario_model import scenario_model
from tests.model_server import ModelServer

FOCUS = ("run", "--quiet", "--focus", "the page")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Commanded]:
    isolate_git(monkeypatch, tmp_path)
    commanded = Commanded(tmp_path)
    yield commanded
    commanded.close()


@pytest.mark.parametrize(
    "args", [["pause"], ["continue"], ["stop"], ["stop", "--now"], ["skip"], ["steer", "x"]]
)
def test_nothing_runs(run: Commanded, args: list[str]) -> None:
    """Without a run a command is one sentence with exit code 3, and writes nothing."""
    before = sorted(run.folder.rglob("*"))
    code, said = run.tell(*args)
    assert 3 == code
    assert [f"cuggino: nothing runs in {run.folder}", "  see `cuggino status`"] == said.splitlines()
    assert before == sorted(run.folder.rglob("*"))


def test_an_agent_cannot_send(run: Commanded) -> None:
    """Agents and commands of a run cannot command it."""
    code, said = run.tell("steer", "x", env={"CUGGINO_ROLE": "implementing"})
    assert 2 == code
    assert said.startswith("cuggino: agents and commands of a run cannot command it")


@pytest.mark.real_agent
def test_pause_outlasts_a_kill(run: Commanded) -> None:
    """A run that was killed while paused is still paused when it is resumed."""
    run.start(*FOCUS)
    run.at("planning")
    assert (0, "The run pauses after this stage.\n") == run.tell("pause")
    assert (0, "A pause was asked for already; `cuggino continue` ends it.\n") == run.tell("pause")
    run.let("planning")
    run.has("RunPaused")
    assert 4 == run.tell("status")[0]
    run.kill()
    code, said = run.tell("status")
    assert 3 == code
    assert "was killed" in said
    assert "cuggino run --resume" in said
    run.let("implementing", "reviewing")
    run.start("run", "--quiet", "--resume")
    run.has("RunPaused", 2)
    assert (0, "The run continues.\n") == run.tell("continue")
    assert 0 == run.ends()[0]
    assert 1 == len([event for event in run.events() if isinstance(event, PauseEnded)])
    assert 1 == run.tags().count("LoopApproved")


def test_nothing_to_continue(run: Commanded) -> None:
    """A command that a run ignores is an error with the reason."""
    run.start(*FOCUS)
    run.at("planning")
    assert (2, "cuggino: nothing is paused\n") == run.tell("continue")
    code, said = run.tell("skip")
    refused = "cuggino: only a watch, or a run with hands, has items to skip"
    assert (2, refused) == (code, said.splitlines()[0])
    code, said = run.tell("steer", "x", "--item", "001-a.md")
    assert (2, "cuggino: no item is at work\n") == (code, said)
    assert (2, "cuggino: the message is empty") == (
        (found := run.tell("steer", " "))[0],
        found[1].splitlines()[0],
    )


@pytest.mark.real_agent
def test_stop_and_resume(run: Commanded) -> None:
    """A stopped run ends after its stage with exit code 130, and continues when resumed."""
    run.start(*FOCUS)
    run.at("planning")
    assert (0, "The run stops after this stage.\n") == run.tell("stop")
    assert 0 == run.tell("status", "--quiet")[0]
    run.let("planning", "implementing", "reviewing")
    assert 130 == run.ends()[0]
    assert not (run.gates / "implementing.waits").exists()
    run.start("run", "--quiet", "--resume")
    assert 0 == run.ends()[0]
    assert 1 == run.tags().count("PlanningStart")


@pytest.mark.real_agent
def test_a_file_written_by_hand_is_ignored(run: Commanded) -> None:
    """A file that no person has signed is renamed, and the run goes on."""
    run.start(*FOCUS)
    run.at("planning")
    run.workspace.control.mkdir(exist_ok=True)
    forged = run.workspace.control / "000.json"
    forged.write_text('{"command": {"_tag": "StopAsked", "now": true}}')
    run.has("ControlIgnored")
    run.let("planning", "implementing", "reviewing")
    code, said = run.ends()
    assert 0 == code
    assert "000.json" in said
    assert [("000.json", "it is not signed")] == [
        (event.source, event.reason) for event in run.events() if isinstance(event, ControlIgnored)
    ]
    assert not forged.exists()


@pytest.mark.real_agent
def test_skip_parks_the_item(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`skip` parks the item at work, and the watch takes the next one."""
    isolate_git(monkeypatch, tmp_path)
    run = Commanded(tmp_path)
    GitProject(run.folder)
    for name in ("010-a.md", "020-b.md"):
        run.workspace.backlog.mkdir(parents=True, exist_ok=True)
        (run.workspace.backlog / name).write_text(f"# {name}\n")
    run.start("watch", "--quiet")
    run.at("planning")
    code, said = run.tell("skip", "--item", "020-b.md")
    assert (2, "cuggino: 020-b.md is not at work\n") == (code, said)
    assert (0, "010-a.md is parked.\n") == run.tell("skip", "--item", "010-a.md")
    parked = [event for event in run.events() if isinstance(event, WatchItemParked)]
    assert ["010-a.md"] == [event.filename for event in parked]
    run.let("planning", "implementing", "reviewing")
    run.has("WatchBacklogWaiting")
    code, said = run.tell("status")
    assert "010-a.md" in said
    assert 4 == code
    run.tell("stop", "--now")
    assert 130 == run.ends()[0]


@pytest.mark.real_agent  # many processes: with the second command
def test_messages_outlast_a_kill(run: Commanded) -> None:
    """A message that no agent has got is in the prompt of a resumed run."""
    run.start(*FOCUS)
    run.at("planning")
    assert (0, f"{_LATER}\n") == run.tell("steer", "-", stdin="use\n  flask\n")
    run.kill()
    run.let("planning", "implementing", "reviewing")
    run.start("run", "--quiet", "--resume")
    assert 0 == run.ends()[0]
    assert [Steered(text="use\n  flask", to="prompt")] == [
        event for event in run.events() if isinstance(event, Steered)
    ]


@pytest.mark.real_agent
def test_follow_goes_on_after_a_kill(run: Commanded) -> None:
    """`follow` shows a run across a kill and its resumption, and ends with its exit code."""
    run.start(*FOCUS)
    run.at("planning")
    follower = run.open("follow")
    assert follower.stdout is not None
    lines: list[str] = []
    while "Planning] Starting" not in "".join(lines):
        lines.append(follower.stdout.readline())
    run.kill()
    while "was killed" not in "".join(lines):
        lines.append(follower.stdout.readline())
    run.let("planning", "implementing", "reviewing")
    run.start("run", "--quiet", "--resume")
    assert 0 == run.ends()[0]
    code, rest = run.of(follower)
    assert 0 == code
    assert "waiting until it is resumed" in lines[-1]
    assert "[Planning] Starting" not in rest
    assert "[Loop] Implementation approved, unchecked" in rest
    assert "[Summary] Approved" in rest


@pytest.mark.real_agent
def test_follow_ends_with_the_code_of_the_run(run: Commanded) -> None:
    """`follow` of a run that is stopped at once has its code, also afterwards."""
    run.start(*FOCUS)
    run.at("planning")
    follower = run.open("follow", "--quiet")
    code, said = run.tell("stop", "--now")
    assert (0, True) == (code, said in ("The run has ended.\n", "The run is ending.\n"))
    assert 130 == run.ends()[0]
    assert "PlanComplete" not in run.tags()
    assert 130 == run.of(follower)[0]
    code, said = run.tell("follow", "--json")
    assert 130 == code
    assert '{"_tag":"StopAsked","now":true}' in said.splitlines()


@pytest.mark.real_agent
def test_follow_of_a_killed_run(run: Commanded) -> None:
    """A run that was killed before is shown, with the command that resumes it."""
    run.start(*FOCUS)
    run.at("planning")
    run.kill()
    (path,) = run.workspace.journal.glob("*.jsonl")
    with path.open("a") as file:
        file.write('{"v":1,"seq":99,"at":"2026')
    code, said = run.tell("follow")
    assert 1 == code
    assert "[Planning] Starting" in said
    assert "was killed; resume it: cuggino run --resume" in said


@pytest.mark.real_agent
def test_follow_a_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`follow` of a watch shows the runs of its items, each event once."""
    isolate_git(monkeypatch, tmp_path)
    run = Commanded(tmp_path)
    GitProject(run.folder)
    run.workspace.backlog.mkdir(parents=True)
    for name in ("010-a.md", "020-b.md"):
        (run.workspace.backlog / name).write_text(f"# {name}\n")
    run.start("watch", "--quiet")
    run.at("planning")
    code, said = run.tell("status", "--json")
    found = json.loads(said)
    assert (0, "running") == (code, found["state"])
    assert ("watch", "010-a.md", "planning") == tuple(
        found["run"][name] for name in ("kind", "item", "stage")
    )
    assert (1, 2) == (found["run"]["position"], found["run"]["total"])
    follower = run.open("follow", "--json")
    run.let("planning", "implementing", "reviewing")
    run.has("WatchItemCompleted", 2)
    run.has("WatchBacklogWaiting")
    assert 3 == run.tell("status", "--quiet")[0]
    run.tell("stop", "--now")
    assert 130 == run.ends()[0]
    code, said = run.of(follower)
    assert 130 == code
    tags = [json.loads(line)["_tag"] for line in said.splitlines()]
    assert 2 == tags.count("WatchItemCompleted") == tags.count("LoopApproved")
    assert 2 == tags.count("PlanningStart") == tags.count("PlanComplete")
    assert tags.index("LoopApproved") < tags.index("WatchItemCompleted")
    assert tags == [
        json.loads(line)["_tag"] for line in run.tell("follow", "--json")[1].splitlines()
    ]


@pytest.mark.real_agent  # many processes: with the second command
def test_messages_are_repeated_to_a_repeated_session(run: Commanded) -> None:
    """A message that a killed agent got is repeated when its stage is repeated."""
    run.start(*FOCUS)
    run.at("planning")
    run.tell("steer", "use flask")
    run.let("planning")
    run.at("implementing")
    run.has("Steered")
    run.kill()
    run.let("implementing", "reviewing")
    run.start("run", "--quiet", "--resume")
    assert 0 == run.ends()[0]
    assert 2 * [Steered(text="use flask", to="prompt")] == [
        event for event in run.events() if isinstance(event, Steered)
    ]


LATER = f"{_LATER}\n"
TEXT = "Use the form in forms.py, è\n\nand no other."
NEXT = "Add no comments."


@pytest.mark.real_agent
@pytest.mark.timeout(2 * LIMIT)
def test_steer(claude_cli: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message reaches the running agent, or the next one if it comes between sessions."""
    isolate_git(monkeypatch, tmp_path)
    run = Commanded(tmp_path, agent="claude", agentPath=str(claude_cli), loginCheck=False)
    GitProject(run.folder)
    model = scenario_model(load_scenario(run.folder / "scenario.toml"), run.folder)
    with ModelServer(model) as server:
        for name, value in agent_env(tmp_path / "home", server).items():
            monkeypatch.setenv(name, value)
        try:
            run.start("run", "--quiet", "--focus", "the page")
            run.at("planning")
            answer = run.tell("steer", TEXT)  # Claude Code reads it when its tool has ended
            assert (0, LATER) == answer
            run.tell("pause")
            run.let("planning")
            run.has("Steered")
            run.has("RunPaused")
            assert (0, LATER) == run.tell("steer", NEXT)
            run.let("implementing", "reviewing")
            run.tell("continue")
            code, said = run.ends()
        finally:
            run.close()
    assert 0 == code, said
    assert [Steered(text=TEXT, to="session"), Steered(text=NEXT, to="prompt")] == [
        event for event in run.events() if isinstance(event, Steered)
    ]
    told = [TEXT in request.messages_text for request in server.requests]
    assert told[0] is False
    assert any(told)
    first = next(request for request in server.requests if NEXT in request.messages_text)
    assert TEXT not in first.messages_text
    assert 0 == first.turns
