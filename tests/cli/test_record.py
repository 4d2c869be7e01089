"""`--record` and `--speed`, and the demo that is interrupted."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cuggino.simulation import STRATEGIES, Summary
from cuggino.testing import Marbles
from cuggino_cli.commands.demo import _DEMO, _FOCUS, make_project
from cuggino_cli.main import main
from cuggino_cli.screen.simulation import chart_lines
from tests.agents.cassettes.recorded import HELLO, kinds, lines, recorded
from tests.cli import deliveries, loops
from tests.cli.cli import Cli
from tests.git_project import isolate_git
from tests.limits import LIMIT
from tests.runs.test_state_summary import record

pytestmark = pytest.mark.usefixtures("no_engine")


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
    assert f"{speed!r} is not a speed such as 1, 2.5 or max." in cli.err(
        "run", "--focus", "x", "--agent", "replay:c", "--speed", speed
    )


@pytest.mark.real_agent  # its agents take ten seconds
def test_resumed_as_it_says(tmp_path: Path) -> None:
    """The summary of an interrupted demo names a command that goes on in the demo's folder."""
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    folder = tmp_path / "the demo"
    demo = subprocess.Popen(
        ["cuggino", "demo", "--directory", str(folder)],
        cwd=tmp_path,
        env=env,
        stdout=subprocess.PIPE,
        text=True,
    )
    with demo:
        assert demo.stdout is not None
        while "[Implementing] Starting" not in demo.stdout.readline():
            assert demo.poll() is None
        demo.send_signal(signal.SIGINT)
        told = demo.stdout.read()
        assert 130 == demo.wait(timeout=LIMIT)
    hint = re.search(r"`(cd .* && cuggino run --resume)` continues", told)
    assert hint is not None, told
    again = subprocess.run(
        ["sh", "-c", hint[1]], cwd=tmp_path, env=env, capture_output=True, timeout=LIMIT
    )
    assert (0, b"") == (again.returncode, again.stderr)
    log = ["git", "-C", str(folder), "log", "--format=%s"]
    assert 4 == len(subprocess.check_output(log, text=True).splitlines())


IN_MEMORY = [one for one in STRATEGIES if not one.in_clones]


def test_table_and_chart(cli: Cli) -> None:
    """The command prints seeds, odds, a row for each strategy, and the chart."""
    out, err = cli.both("simulate", "--seeds", "2", "--covers", "1")
    assert "2 runs of each strategy, seeds 1 to 2" in out
    assert "covers 100%" in out
    for strategy in IN_MEMORY:
        assert f"  {strategy.name} " in out
    assert '"done" is true' in out
    assert "" == err


def test_json_is_the_same_twice(cli: Cli) -> None:
    """The same seeds give the same figures."""
    outs = []
    for _ in range(2):
        assert 0 == main(["simulate", "--seeds", "2", "--seed", "7", "--json"])
        outs.append(json.loads(cli.printed().out))
    assert outs[0] == outs[1]
    assert [one["name"] for one in outs[0]["strategies"]] == [one.name for one in IN_MEMORY]
    assert outs[0]["seed"] == 7


def test_from_journals(here: Path, cli: Cli) -> None:
    """Recorded runs give the odds, with what each rests on; an option overrides them."""
    record(here, 1, "approved", planning=1.0, implementing=3.0)
    out = cli("simulate", "--seeds", "1", "--from-journals", "--planning", "9")
    assert "Estimated from 1 recorded run of the coding loop" in out
    assert re.search(r"^implementing +\$3\.00  1 session$", out, re.MULTILINE)
    assert "planning $9.00, implementing $3.00" in out


def test_chart_places_each_strategy() -> None:
    """A strategy stands at its cost and its calibration; one that is never done is left out."""
    found = {
        "cheap": Summary(trials=10, done=10, true=5, missed=0, cost_usd=1.0, sessions=1.0),
        "never": Summary(trials=10, done=0, true=0, missed=3, cost_usd=1.5, sessions=1.0),
        "dear": Summary(trials=10, done=10, true=10, missed=0, cost_usd=2.0, sessions=1.0),
    }
    lines = chart_lines(found)
    assert lines[1] == " 100 % |" + " " * 59 + "c"
    assert lines[6] == "  50 % |" + " " * 30 + "a"
    assert "b" not in "".join(lines[1:12])
    assert lines[-1].endswith("$2.00 a run")
