"""`--record` and `--speed`: every loop records its agents, and plays them without pauses."""

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
from tests.git_project import isolate_git


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The tags of what was printed since the last look."""
    out = capsys.readouterr().out
    return [json.loads(line)["_tag"] for line in out.splitlines()]


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project of the demo, which is the present folder, and its scenario without pauses."""
    isolate_git(monkeypatch, tmp_path / "home")
    scenario = (_DEMO / "scenario.toml").read_text().replace("pause = 0.3", "pause = 0")
    (tmp_path / "scenario.toml").write_text(scenario)
    project = make_project(str(tmp_path / "project"))
    monkeypatch.chdir(project)
    return project


def test_run(
    demo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`cuggino run` is recorded, and is the same in another project: events and exit code."""
    cassette = demo.parent / "c.jsonl"
    words = ["run", "--focus", _FOCUS, "--json"]
    assert 0 == main([*words, "--agent", "scripted:../scenario.toml", "--record", "../c.jsonl"])
    before = said(capsys)
    assert 7 == kinds(cassette).count("session")
    there = make_project(str(demo.parent / "there"))
    monkeypatch.chdir(there)
    assert 0 == main([*words, "--agent", "replay:../c.jsonl"])
    assert before == said(capsys)
    assert "replay:../c.jsonl" in next((there / ".cuggino" / "journal").iterdir()).read_text()
    (there / ".cuggino.json").write_text('{"commit": true}')
    assert 1 == main([*words, "--agent", "replay:../c.jsonl", "--speed", "max"])
    error = capsys.readouterr().err
    assert re.search(
        r"cuggino: the replay diverges: the system prompt of session 2 .*\n  rec", error
    )


def test_deliver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`cuggino deliver` is the same again, with what the tools of its server have written."""
    project = deliveries.project_of(tmp_path / "a", deliveries.SCENARIO)
    there = deliveries.project_of(tmp_path / "b", "")
    monkeypatch.chdir(tmp_path)
    words = ["deliver", "--json", "-p"]
    assert 0 == main([*words, str(project), "--record", "../c.jsonl"])
    before = said(capsys)
    assert 0 == main([*words, str(there), "--agent", "replay:../c.jsonl"])
    assert sorted(before) == sorted(said(capsys))
    status = [(folder / ".autonoe" / "status.json").read_text() for folder in (project, there)]
    assert json.loads(status[0])["deliverables"] == json.loads(status[1])["deliverables"]


def test_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`cuggino loop` is the same again, with its jobs and its done file."""
    words = ["loop", "--auto", "--json"]
    outcomes: list[tuple[int, list[str], str]] = []
    for name, more in (("a", ["--record", "../c.jsonl"]), ("b", ["--agent", "replay:../c.jsonl"])):
        project = loops.project_of(tmp_path / name, loops.SCENARIO)
        monkeypatch.chdir(project)
        code = main([*words, *more])
        jobs = (project / "docs" / "requirements" / "jobs-to-be-done.json").read_text()
        outcomes.append((code, said(capsys), jobs))
    assert outcomes[0] == outcomes[1]
    assert 0 == outcomes[0][0]
    assert "judge" in [line.get("role") for line in lines(tmp_path / "c.jsonl")]


def test_a_watch_ends_where_it_diverges(ready: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An item of a replayed watch that is another one is not tried again: the watch ends."""
    (ready / ".cuggino" / "backlog").mkdir(parents=True)
    (ready / ".cuggino" / "backlog" / "001.md").write_text("Something else.\n")
    (ready / ".cuggino.json").write_text('{"settleSeconds": 0.1}')
    recorded(ready / "c", ready, Marbles(a=HELLO), "a|", role="planning")
    assert 1 == main(["watch", "--agent", "replay:c", "--json"])
    out, err = capsys.readouterr()
    assert "cuggino: the replay diverges: " in err.replace("Loop error in planning phase: ", "", 1)
    assert "WatchItemRetry" not in out
    assert (ready / ".cuggino" / "backlog" / "001.md").exists()


def test_nothing_has_to_hold_a_recording(ready: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a recording no tool runs, so that nobody is warned that it is held by nothing."""
    recorded(ready / "c", ready, Marbles(a=HELLO), "a|", role="planning")
    assert 1 == main(["run", "--focus", "x", "--agent", "replay:c", "--quiet"])
    assert ["cuggino: the replay diverges"] == [
        line[:28] for line in capsys.readouterr().err.splitlines() if line[:1] != " "
    ]


@pytest.mark.parametrize("command", ["run", "watch", "deliver", "loop"])
def test_every_loop_has_both(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All four commands take both options."""
    assert 0 == main([command, "--help"])
    out = capsys.readouterr().out
    assert "--record FILE" in out
    assert "--speed X" in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--record", "there.jsonl"], "cannot record to {}/there.jsonl: it is there already"),
        (["--record", "no/c.jsonl"], "cannot record to {0}/no/c.jsonl: there is no folder {0}/no"),
        (["--record", "."], "cannot record to {}: it is a folder"),
        (["--agent", "replay:no.jsonl"], "cannot read the cassette {}/no.jsonl: No such file"),
        (["--agent", "replay:there.jsonl"], "{}/there.jsonl, line 1 cannot be read: it is no JSON"),
        (["--agent", "replay:new.jsonl"], "{}/new.jsonl is of version 9, and this cuggino reads 1"),
        (["--speed", "2"], "the agent scripted has no speed"),
    ],
)
def test_what_cannot_be(
    words: list[str], told: str, ready: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What cannot be recorded or played is one sentence and what to do; nothing has started."""
    (ready / "there.jsonl").write_text("mine\n")
    (ready / "new.jsonl").write_text('{"kind": "cassette", "version": 9}\n')
    assert 2 == main(["run", "--focus", "x", *words])
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("cuggino: ")
    assert told.format(ready) in first
    assert second.startswith("  ")
    assert "mine\n" == (ready / "there.jsonl").read_text()
    assert not (ready / ".cuggino").exists()


@pytest.mark.parametrize("speed", ["fast", "-1", "nan", "inf", ""])
def test_no_speed(speed: str, ready: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A speed is a number from 0 on, or `max`."""
    assert 2 == main(["run", "--focus", "x", "--agent", "replay:c", "--speed", speed])
    assert f"{speed!r} is no speed such as 1, 2.5 or max." in capsys.readouterr().err
