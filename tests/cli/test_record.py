"""`--record` and `--speed`: every loop records its agents and replays them without pauses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cuggino.testing import Marbles
from cuggino_cli.commands.demo import _DEMO, _FOCUS, make_project
from cuggino_cli.main import main
from tests.agents.cassettes.recorded import HELLO, kinds, lines, recorded
from tests.cli import deliveries, loops
from tests.cli.cli import Cli
from tests.git_project import isolate_git


def said(cli: Cli) -> list[str]:
    """Return the tags printed since the last call; a replay starts nothing to be confined."""
    out = cli.printed().out
    tags = [json.loads(line)["_tag"] for line in out.splitlines()]
    return [tag for tag in tags if tag != "SandboxChosen"]


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The demo's project as the working directory, and its scenario without pauses."""
    isolate_git(monkeypatch, tmp_path / "home")
    scenario = (_DEMO / "scenario.toml").read_text().replace("pause = 0.3", "pause = 0")
    (tmp_path / "scenario.toml").write_text(scenario)
    project = make_project(str(tmp_path / "project"))
    monkeypatch.chdir(project)
    return project


@pytest.mark.real_agent
def test_run(demo: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    """A recorded `cuggino run` gives the same events and exit code in another project."""
    cassette = demo.parent / "c.jsonl"
    words = ["run", "--focus", _FOCUS, "--json"]
    assert 0 == main([*words, "--agent", "scripted:../scenario.toml", "--record", "../c.jsonl"])
    before = said(cli)
    assert 7 == kinds(cassette).count("session")
    there = make_project(str(demo.parent / "there"))
    monkeypatch.chdir(there)
    assert 0 == main([*words, "--agent", "replay:../c.jsonl"])
    assert before == said(cli)
    assert "replay:../c.jsonl" in next((there / ".cuggino" / "journal").iterdir()).read_text()
    (there / ".cuggino.json").write_text('{"commit": true}')
    error = cli.err(*words, "--agent", "replay:../c.jsonl", "--speed", "max", code=1)
    assert re.search(
        r"cuggino: the replay diverges: the system prompt of session 2 .*\n  rec", error
    )


@pytest.mark.usefixtures("no_session_pause")
def test_deliver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    """A recorded `cuggino deliver` gives the same result, including the server's tool writes."""
    project = deliveries.project_of(tmp_path / "a", deliveries.SCENARIO, sandbox="off")
    there = deliveries.project_of(tmp_path / "b", "", sandbox="off")
    monkeypatch.chdir(tmp_path)
    words = ["deliver", "--json", "-p"]
    assert 0 == main([*words, str(project), "--record", "../c.jsonl"])
    before = said(cli)
    assert 0 == main([*words, str(there), "--agent", "replay:../c.jsonl"])
    assert sorted(before) == sorted(said(cli))
    status = [(folder / ".autonoe" / "status.json").read_text() for folder in (project, there)]
    assert json.loads(status[0])["deliverables"] == json.loads(status[1])["deliverables"]


def test_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    """A recorded `cuggino loop` gives the same result, including its jobs and its done file."""
    words = ["loop", "--auto", "--json"]
    outcomes: list[tuple[int, list[str], str]] = []
    for name, more in (("a", ["--record", "../c.jsonl"]), ("b", ["--agent", "replay:../c.jsonl"])):
        project = loops.project_of(tmp_path / name, loops.SCENARIO)
        monkeypatch.chdir(project)
        code = main([*words, *more])
        jobs = (project / "docs" / "requirements" / "jobs-to-be-done.json").read_text()
        outcomes.append((code, said(cli), jobs))
    assert outcomes[0] == outcomes[1]
    assert 0 == outcomes[0][0]
    assert "judge" in [line.get("role") for line in lines(tmp_path / "c.jsonl")]


def test_a_watch_ends_where_it_diverges(ready: Path, cli: Cli) -> None:
    """A replayed watch ends at a different item instead of retrying it."""
    (ready / ".cuggino" / "backlog").mkdir(parents=True)
    (ready / ".cuggino" / "backlog" / "001.md").write_text("Something else.\n")
    (ready / ".cuggino.json").write_text('{"settleSeconds": 0.1}')
    recorded(ready / "c", ready, Marbles(a=HELLO), "a|", role="planning")
    out, err = cli.both("watch", "--agent", "replay:c", "--json", code=1)
    assert "cuggino: the replay diverges: " in err.replace("Loop error in planning phase: ", "", 1)
    assert "WatchItemRetry" not in out
    assert (ready / ".cuggino" / "backlog" / "001.md").exists()


def test_a_recording_needs_no_guard(ready: Path, cli: Cli) -> None:
    """A replay runs no tools, so it prints no guard warning."""
    recorded(ready / "c", ready, Marbles(a=HELLO), "a|", role="planning")
    assert ["cuggino: the replay diverges"] == [
        line[:28]
        for line in cli.err(
            "run", "--focus", "x", "--agent", "replay:c", "--quiet", code=1
        ).splitlines()
        if line[:1] != " "
    ]


@pytest.mark.parametrize("command", ["run", "watch", "deliver", "loop"])
def test_every_loop_has_both(command: str, cli: Cli) -> None:
    """All four commands have both options."""
    out = cli(command, "--help")
    assert "--record, " in out
    assert "--speed, " in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--record", "there.jsonl"], "cannot record to {}/there.jsonl: it already exists"),
        (["--record", "no/c.jsonl"], "cannot record to {0}/no/c.jsonl: there is no folder {0}/no"),
        (["--record", "."], "cannot record to {}: it is a folder"),
        (["--agent", "replay:no.jsonl"], "cannot read the cassette {}/no.jsonl: No such file"),
        (
            ["--agent", "replay:there.jsonl"],
            "there.jsonl, line 1 cannot be read: it is not JSON",
        ),
        (
            ["--agent", "replay:new.jsonl"],
            "new.jsonl has version 9, but this cuggino supports up to",
        ),
        (["--speed", "2"], "the agent scripted has no speed"),
    ],
)
def test_invalid_recordings(words: list[str], told: str, ready: Path, cli: Cli) -> None:
    """An invalid recording is one sentence with advice, and nothing starts."""
    (ready / "there.jsonl").write_text("mine\n")
    (ready / "new.jsonl").write_text('{"kind": "cassette", "version": 9}\n')
    first, second = cli.err("run", "--focus", "x", *words).splitlines()
    assert first.startswith("cuggino: ")
    assert told.format(ready) in first
    assert second.startswith("  ")
    assert "mine\n" == (ready / "there.jsonl").read_text()
    assert not (ready / ".cuggino").exists()


@pytest.mark.parametrize("speed", ["fast", "-1", "nan", "inf", ""])
def test_invalid_speed(speed: str, ready: Path, cli: Cli) -> None:
    """A speed is a number of 0 or more, or `max`."""
    assert f"{speed!r} is no speed such as 1, 2.5 or max." in cli.err(
        "run", "--focus", "x", "--agent", "replay:c", "--speed", speed
    )
