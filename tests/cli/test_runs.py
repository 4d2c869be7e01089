"""`cuggino runs`: recorded runs as a list, one by one, replayed, and in statistics."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from reactivex import operators
from reactivex.scheduler import VirtualTimeScheduler

from cuggino import events as ev, run
from cuggino.config import Config, save_config
from cuggino.runs import RecordedRun, Runs, replay
from cuggino.storage import Workspace
from cuggino.storage.journal import Journal
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.recorded_runs import APPROVED, AT, ONE, SAID, THREE, TWO, Said, record
from tests.cli.rounds import APPROVES, PLANS, implements
from tests.git_project import GitProject, isolate_git


def local(at: datetime) -> str:
    return f"{at.astimezone():%m-%d %H:%M}"


def states(root: Path) -> list[str]:
    return [run.state for run in Runs(root).all() if isinstance(run, RecordedRun)]


def test_no_runs(project: Path, cli: Cli) -> None:
    """Without a journal there is a sentence, and no JSON."""
    assert "There are no runs yet.\n" == cli("runs")
    assert "" == cli("runs", "--json")


def test_list(project: Path, cli: Cli) -> None:
    """Runs are listed newest first, one per line, including unreadable ones."""
    record(project, ONE, *SAID, *APPROVED)
    broken = record(project, TWO)
    broken.write_text("x\ny\n")
    record(
        project,
        THREE,
        *SAID[:4],
        (5, None, ev.RunEnded(state="interrupted")),
        focus="\na\x1b[2Jb\nmore",
    )
    out = cli("runs")
    head, three, two, one = out.splitlines()
    assert ["ID", "STATE", "STARTED", "TIME", "ITER", "COST", "AGENT", "FOCUS"] == head.split()
    date = local(AT)
    assert f"0193b2c3  interrupted  {date}  5s      1            claude  a␛[2Jb" == three
    assert re.match(r"0193b2c2  unreadable  +.*0193b2c2-.*line 1 is broken: not JSON$", two)
    assert f"0193b2c1  approved     {date}  1m 40s  1     $1.25  claude  login" == one
    assert out == cli("runs", "list")


def test_list_as_json(project: Path, cli: Cli) -> None:
    """With `--json` each run is an object on its own line."""
    record(project, ONE, *SAID, *APPROVED)
    record(project, TWO).write_text("")
    two, one = map(json.loads, cli("runs", "--json").splitlines())
    assert (TWO, "unreadable") == (two["run_id"], two["state"])
    assert {
        "run_id": ONE,
        "state": "approved",
        "checked": None,
        "resumable": False,
        "kind": "run",
        "command": "cuggino run",
        "focus": "login",
        "item": None,
        "agent": "claude",
        "started": "2026-11-21T12:00:00+00:00",
        "last": "2026-11-21T12:01:40+00:00",
        "duration": 100.0,
        "iterations": 1,
        "tasks": 1,
        "agents": 2,
        "commits": [{"hash": "abc1234", "subject": "Log in"}],
        "cost_usd": 1.25,
        "cost_estimated": False,
        "usage": ev.Usage(input_tokens=7).model_dump(),
        "delivery": None,
    } == one


def test_which_run_is_live(project: Path) -> None:
    """Only an unfinished run started by the workspace's current owner is running.

    Other unfinished runs were killed; without an owner all were, despite a dead owner's leftovers.
    """
    workspace = Workspace(project)
    record(project, ONE, *SAID, at=AT)
    record(project, TWO, at=AT + timedelta(hours=2))
    record(project, THREE, *APPROVED, at=AT + timedelta(hours=2))
    assert ["approved", "killed", "killed"] == states(project)
    with workspace.lock(since=AT + timedelta(hours=1, microseconds=5)):
        left_behind = (workspace.folder / "lock.json").read_bytes()
        assert ["approved", "running", "killed"] == states(project)
    (workspace.folder / "lock.json").write_bytes(left_behind)
    assert ["approved", "killed", "killed"] == states(project)
    journal = Journal.open(project / ".cuggino" / "journal" / f"{ONE}.jsonl")
    journal.append(ev.RunContinued(), at=AT + timedelta(hours=2))
    journal.close()
    with workspace.lock(since=AT + timedelta(hours=2)):
        assert ["approved", "running", "running"] == states(project)
        runs = list(Runs(project).all())
        assert not any(run.resumable for run in runs if isinstance(run, RecordedRun))


def test_listing_does_not_lock(project: Path) -> None:
    """Listing runs leaves the workspace unlocked, and its owner undisturbed."""
    record(project, ONE)
    workspace = Workspace(project)
    with workspace.lock():
        assert ["killed"] == states(project), "it began long before"
        owner = workspace.owner()
        assert owner is not None
        assert os.getpid() == owner.pid
    (workspace.folder / "lock.json").write_text("{}")
    assert ["killed"] == states(project)
    with workspace.lock():
        pass


def test_ids(project: Path, cli: Cli) -> None:
    """An ID may be a unique prefix; otherwise there is one clear sentence."""
    record(project, ONE)
    record(project, TWO)
    assert 0 == main(["runs", "show", "0193b2c1"])
    assert 0 == main(["runs", "show", TWO])
    cli.printed()
    for subcommand in ("show", "replay"):
        assert f"2 runs begin with '0193': {TWO}, {ONE}\n" in cli.err("runs", subcommand, "0193")
        assert "there is no run '7\\x1b'\n" in cli.err("runs", subcommand, "7\x1b")


def test_short_ids_are_unique(project: Path) -> None:
    """Short IDs have eight characters, or more where two runs started close together."""
    for run_id in ("0193b2c1-a", "0193b2c1-b", "0193b2d1-a", "0"):
        record(project, run_id)
    assert {
        "0193b2c1-a": "0193b2c1-a",
        "0193b2c1-b": "0193b2c1-b",
        "0193b2d1-a": "0193b2d1",
        "0": "0",
    } == {run.id: run.short_id for run in Runs(project).all()}


def test_show(project: Path, cli: Cli) -> None:
    """The summary has the run's facts, its stages with times and outcomes, and how to resume.

    Stages that only read something are left out.
    """
    again = [
        (97, "clock#9", ev.StageStarted(name="clock")),
        (97, "clock#9", ev.StageFinished(outcome={"time": "2026-11-21T12:00:00"})),
        (98, "implementing#4", ev.StageStarted(name="implementing")),
        (99, None, ev.RunContinued()),
        (99, "implementing#4", ev.StageStarted(name="implementing")),
        (120, None, ev.RunEnded(state="failed", message="the agent\ncrashed")),
    ]
    record(project, ONE, *SAID, *again)
    assert (
        f"""\
Run {ONE} failed
  Problem    the agent
             crashed
  Command    cuggino run
  Focus      login
  Agent      claude
  Started    {AT.astimezone():%Y-%m-%d %H:%M:%S}
  Duration   1m 59s
  Iterations 1
  Tasks      1
  Agents     2
  Commits    1
             abc1234 Log in
  Cost       $1.25
  Tokens     7 in, 0 out, 0 cached

Stages
  planning#1      1m 29s  PlanComplete
  implementing#2       4s  Progress: Log in
  commit#3             1s  CommitPerformed: abc1234 Log in
  implementing#4  unfinished (2 attempts)

Next         resume it: cuggino run --resume 0193b2c1
""".replace("1m 29s  P", " 1m 29s  P")
        == cli("runs", "show", "0193")
    )


def test_show_a_long_task(project: Path, cli: Cli) -> None:
    """Of a text of many lines, as that of a backlog item, the first one is shown."""
    record(project, ONE, *SAID, focus="# Log in\n\nWith a password.\n")
    assert "  Focus      Log in\n  Agent" in cli("runs", "show", "0193")
    assert cli("runs").endswith("  Log in\n")
    said = "The file `.specs/page.md`, with this content:\n\nA login page.\nWith a password."
    record(project, TWO, *SAID, focus=said)
    assert "  A login page.\n" in cli("runs")


def test_show_a_watch(project: Path, cli: Cli) -> None:
    """It has its items; the iterations and commits of these are in their own runs."""
    told = [
        ev.WatchProcessingItem(filename="1.md", slot=1),
        ev.WatchSentBack(filename="1.md", reason="check", output="", paths=(), returns=1),
        ev.WatchLanded(filename="1.md", commit="c", trunk_was="b"),
        ev.WatchItemCompleted(filename="1.md"),
        ev.WatchItemParked(filename="2.md", reason="x"),
        ev.WatchLanded(filename="3.md", commit="d", trunk_was="c"),
        ev.WatchItemCompleted(filename="3.md"),
    ]
    said = [(at, "slots", event) for at, event in enumerate(told)]
    record(project, ONE, *said, kind="watch", focus="")
    shown = cli("runs", "show", "0193")
    assert (
        "  Duration   6s\n  Items      2 completed, 1 parked\n  Landed     2, 1 sent back\n"
    ) in shown
    assert "Iterations" not in shown
    row = cli("runs").splitlines()[1]
    assert ["6s", "claude", "(cuggino", "watch)"] == row.split()[-4:]
    listed = json.loads(cli("runs", "--json"))
    assert (None, None) == (listed["iterations"], listed["tasks"])
    assert "Iterations" not in cli("runs", "replay", "0193")


def test_show_as_json(project: Path, cli: Cli) -> None:
    """The object of the list, plus the stages, the options and the error."""
    record(project, ONE, *SAID[:4], (3, None, ev.RunEnded(state="quota", message="limit")))
    shown = json.loads(cli("runs", "show", "0193", "--json"))
    listed = json.loads(cli("runs", "--json"))
    assert ("quota", True) == (listed["state"], listed["resumable"])
    stage = {"stage": "planning#1", "duration": None, "attempts": 1, "outcome": None}
    assert {**listed, "message": "limit", "options": {}, "stages": [stage]} == shown


@pytest.mark.parametrize(
    ("kind", "said", "hint"),
    [
        ("run", [], "cuggino run --resume 0193b2c1"),
        ("watch", [], "cuggino watch"),
        ("watch", [(1, None, ev.RunEnded(state="interrupted"))], None),
        ("run", [(1, None, ev.RunEnded(state="interrupted"))], "cuggino run --resume 0193b2c1"),
        ("run", [(1, None, ev.RunEnded(state="budget"))], "cuggino run --resume 0193b2c1"),
        ("run", APPROVED, None),
    ],
)
def test_how_to_resume(
    project: Path, cli: Cli, kind: str, said: list[Said], hint: str | None
) -> None:
    """A resumable run shows how to resume; a finished one does not."""
    record(project, ONE, *said, kind=kind)
    for subcommand in ("show", "replay"):
        out = cli("runs", subcommand, "0193")
        assert (hint is not None) == ("resume it" in out)
        assert hint is None or f"resume it: {hint}" in out.splitlines()[-1]


def test_a_broken_journal(project: Path, cli: Cli) -> None:
    """An unreadable journal is an error with the file and the line."""
    record(project, ONE).write_text("x\ny\n")
    for subcommand in ("show", "replay"):
        assert f"{ONE}.jsonl: line 1 is broken: not JSON" in cli.err(
            "runs", subcommand, "0193", code=1
        )


def test_a_run_of_a_backlog_item(project: Path, cli: Cli) -> None:
    """An item's run is named after the item, without the digest, and the watch resumes it."""
    record(project, ONE, kind="run", focus="", item="001 log in.md 7f3a")
    assert cli("runs").endswith("  claude  001 log in.md\n")
    shown = cli("runs", "show", ONE)
    assert "  Item       001 log in.md\n" in shown
    assert shown.endswith("resume it: cuggino watch\n")


def test_runs_of_one_item(project: Path, cli: Cli) -> None:
    """They have the item's title and their number; what waits is shown at the latest one."""
    focus = "The file `.cuggino/backlog/001-log-in.md`, with this content:\n\n# Log in\n\nSoon."
    asked = ev.LoopSpecIssue(iteration=1, content="Which?", filename="1.md")
    ended: list[Said] = [(1, None, asked), (2, None, ev.RunEnded(state="spec_issue"))]
    for number, run_id in enumerate((ONE, TWO)):
        at = AT + timedelta(hours=number)
        record(project, run_id, *ended, at=at, focus=focus, item="001-log-in.md 7f3a")
    record(project, THREE, *SAID, *APPROVED, at=AT + timedelta(hours=3))
    shown = cli("runs").splitlines()
    assert [line.split("claude")[1].strip() for line in shown[1:]] == [
        "login",
        "Log in (run 2 of 2)",
        "Log in (run 1 of 2)",
    ]
    (project / ".cuggino" / "spec-issues").mkdir()
    (project / ".cuggino" / "spec-issues" / "1.md").write_text("# Which?\n")
    shown = cli("runs").splitlines()
    assert [line.split("claude")[1].strip() for line in shown[1:-1]] == [
        "login",
        "a question  Log in (run 2 of 2)",
        "Log in (run 1 of 2)",
    ]
    assert "1 run waits for you: `cuggino status` lists what to do" == shown[-1]
    (project / ".cuggino" / "spec-issues" / "1.md").unlink()
    (project / ".cuggino" / "parked").mkdir()
    (project / ".cuggino" / "parked" / "001-log-in.md").write_text("# Log in\n")
    assert "  parked  Log in (run 2 of 2)\n" in cli("runs")


def test_runs_of_an_edited_item(project: Path, cli: Cli) -> None:
    """A parked item waits once, at its latest run, however often its text has changed."""
    for number, (run_id, digest) in enumerate(((ONE, "7f3a"), (TWO, "80bb"))):
        at = AT + timedelta(hours=number)
        record(project, run_id, *SAID, *APPROVED, at=at, focus="x", item=f"log-in.md {digest}")
    (project / ".cuggino" / "parked").mkdir()
    (project / ".cuggino" / "parked" / "log-in.md").write_text("# Log in\n")
    shown = cli("runs").splitlines()
    assert ["parked" in line for line in shown[1:3]] == [True, False]
    assert "1 run waits for you: `cuggino status` lists what to do" == shown[-1]


def emitted() -> Iterator[str]:
    return (ev.dump_event(event) for _, _, event in SAID if not event.tag.startswith("Stage"))


def test_replay_as_json(project: Path, cli: Cli) -> None:
    """The replay prints the run's events without journal-only entries."""
    new = ev.UnknownEvent(raw={"_tag": "Tomorrow"})
    record(project, ONE, *SAID, (98, None, new), (99, None, ev.RunEnded(state="quota")))
    out = cli("runs", "replay", "0193", "--json")
    assert [*emitted(), ev.dump_event(new)] == out.splitlines()


def test_replay_as_text(project: Path, cli: Cli) -> None:
    """The replay looks like the run, with its duration, and always exits with 0."""
    record(project, ONE, *SAID, *APPROVED)
    out = cli("runs", "replay", "0193")
    assert "▶ Bash: ls" in out
    assert "[Summary] Approved" in out
    assert "Duration   1m 40s" in out
    assert "▶ Bash: ls" not in cli("runs", "replay", "0193", "--quiet")
    coloured = cli("runs", "replay", "0193", "--color", "always")
    assert "\x1b[" in coloured
    assert out == re.sub(r"\x1b\[[0-9;]*m", "", coloured)


@pytest.mark.parametrize(
    ("state", "words"),
    [("failed", "[Failed] it broke"), ("interrupted", "[Interrupted] it broke")],
)
def test_replay_of_a_failed_run(project: Path, cli: Cli, state: Any, words: str) -> None:
    """The error is printed before the summary."""
    record(project, ONE, *SAID, (99, None, ev.RunEnded(state=state, message="it broke")))
    out = cli("runs", "replay", "0193")
    assert out.index(words) < out.index(f"[Summary] {state.capitalize()}")


def test_replay_of_a_resumed_run(project: Path, cli: Cli) -> None:
    """The summary counts the work of two processes once.

    The second process repeated events that the first one had emitted before it was killed.
    """
    totals = ev.RunResumed(run_id=ONE, stages=3, rounds=1, tasks=1, agents=2, cost_usd=1.25)
    rest: list[Said] = [(500, None, ev.RunContinued()), (500, None, totals)]
    rest += [(505, "implementing#2", done) for _, stage, done in SAID if done.tag == "Progress"]
    record(project, ONE, *SAID, *rest, (510, None, ev.RunEnded(state="budget")))
    out = cli("runs", "replay", "0193", "--quiet")
    summary = out[out.index("[Summary] Budget spent") :]
    for line in (
        "Iterations 1",
        "Tasks      1",
        "Agents     2",
        "Cost       $1.25",
        "Duration   1m 47s",
    ):
        assert line in summary


def test_replay_of_an_item(project: Path, cli: Cli) -> None:
    """Paths are relative to the slot, and the total is that of the watch."""
    slots = project.parent / "slots"
    write = ev.ToolCall(name="Write", input={"file_path": f"{slots}/slot-2/a.txt"})
    cost = ev.StageCost(phase="planning", cost_usd=0.5, total_cost=2.0)
    record(
        project,
        ONE,
        (1, "planning#1", write),
        (2, "planning#1", cost),
        item="001-log-in.md 7f3a",
        options={"slot": 2, "apart": [str(slots), str(project)]},
    )
    out = cli("runs", "replay", "0193")
    assert "▶ Write: a.txt\n" in out
    assert "[Planning] $0.50 (watch total $2.00)" in out


@pytest.mark.parametrize("speed", ["-1", "nan", "fast"])
def test_an_invalid_speed(project: Path, cli: Cli, speed: str) -> None:
    """A negative or non-numeric speed is rejected."""
    record(project, ONE)
    told = cli.err("runs", "replay", ONE, "--speed", speed)
    assert f"'{speed}' is not a speed such as 1, 2.5 or max." in told


WORDS = [ev.AgentMessage(text=text) for text in "abcd"]


def played(path: Path, speed: float) -> list[tuple[float, str]]:
    """Return each event with its virtual time."""
    seen: list[tuple[float, str]] = []
    scheduler = VirtualTimeScheduler()
    replay(path, speed=speed).subscribe(
        lambda event: seen.append((scheduler.clock, cast("ev.AgentMessage", event).text)),
        lambda error: seen.append((scheduler.clock, type(error).__name__)),
        lambda: seen.append((scheduler.clock, "|")),
        scheduler=scheduler,
    )
    scheduler.start()
    return seen


def test_the_times_of_a_replay(tmp_path: Path) -> None:
    """Events follow after the recorded gaps, divided by the speed.

    Hidden entries keep their gaps; time between two processes and a clock set back add none.
    """
    a, b, c, d = WORDS
    path = record(
        tmp_path,
        ONE,
        (10, None, a),
        (20, "x#1", ev.StageStarted(name="x")),
        (30, None, b),
        (5000, None, ev.RunContinued()),
        (5010, None, c),
        (5005, None, d),
    )
    assert [(10, "a"), (30, "b"), (40, "c"), (40, "d"), (40, "|")] == played(path, 1)
    assert [(5, "a"), (15, "b"), (20, "c"), (20, "d"), (20, "|")] == played(path, 2)
    assert {0} == {time for time, _ in played(path, 0)}


def test_a_replay_that_meets_a_broken_line(tmp_path: Path) -> None:
    """The lines before the broken one are replayed, followed by the error."""
    path = record(tmp_path, ONE, *[(1, None, word) for word in WORDS])
    path.write_bytes(path.read_bytes().replace(b'"seq":4', b'"seq":9'))
    assert [(1, "a"), (1, "b"), (1, "StorageError")] == played(path, 1)


@pytest.mark.parametrize("seconds", [0, 1, 15])
def test_a_replay_that_is_disposed(tmp_path: Path, seconds: float) -> None:
    """After disposal nothing is emitted and no file stays open."""
    path = record(tmp_path, ONE, *[(10 * n, None, word) for n, word in enumerate(WORDS, 1)])
    files = len(list(Path("/dev/fd").iterdir()))
    seen: list[ev.Event] = []
    scheduler = VirtualTimeScheduler()
    playing = replay(path, speed=1).subscribe(seen.append, scheduler=scheduler)
    scheduler.advance_to(seconds)
    playing.dispose()
    assert files == len(list(Path("/dev/fd").iterdir()))
    scheduler.start()
    assert WORDS[: int(seconds // 10)] == seen


def test_a_subscriber_that_disposes_in_an_event(tmp_path: Path) -> None:
    """Disposal during an event ends the replay with that event."""
    path = record(tmp_path, ONE, *[(1, None, word) for word in WORDS])
    seen: list[ev.Event] = []
    scheduler = VirtualTimeScheduler()
    replay(path, speed=0).pipe(operators.take(2)).subscribe(seen.append, scheduler=scheduler)
    scheduler.start()
    assert WORDS[:2] == seen


@pytest.mark.real_agent
def test_a_long_replay(project: Path) -> None:
    """Twenty thousand events at once neither overflow the stack nor get lost."""
    path = record(project, ONE, *[(1, None, WORDS[0])] * 20_000)
    seen: list[ev.Event] = []
    run(replay(path, speed=0), seen.append)
    assert 20_000 == len(seen)


FORECAST = "[Forecast] Usually takes"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitProject:
    isolate_git(monkeypatch, tmp_path / "home")
    made = GitProject(tmp_path / "project")
    made.write(".specs/a.md", "# A\n")
    made.write(".gitignore", ".cuggino/\nscenario.toml\n")
    costs = PLANS.replace("[[planning]]\n", "[[planning]]\ncost_usd = 0.25\n", 1)
    made.write("scenario.toml", costs + implements("a.txt", "a\n") + APPROVES)
    made.git("add", "-A")
    made.git("commit", "--quiet", "--message=begin")
    monkeypatch.chdir(made.root)
    settings = {"agent": "scripted:scenario.toml", "maxIterations": 1, "sandbox": "off"}
    save_config(made.root, Config.model_validate(settings))
    return made


def run_once(cli: Cli, *options: str) -> str:
    cli.printed()
    return cli("run", "--focus", "a", *options)


@pytest.mark.real_agent
def test_the_fourth_run(repository: GitProject, cli: Cli) -> None:
    """Three runs make a forecast for the fourth, in every view; statistics count all of them."""
    for _ in range(3):
        assert FORECAST not in run_once(cli)
    shown = run_once(cli)
    assert FORECAST in shown
    assert "and costs $0.25; at most" in shown
    assert "and $0.25 in the last 3 runs" in shown
    assert shown.index(FORECAST) < shown.index("[Planning]")
    told = [json.loads(line) for line in run_once(cli, "--json").splitlines()]
    (made,) = [event for event in told if event["_tag"] == "Forecast"]
    assert ("run", 4, 0.25) == (made["loop"], made["runs"], made["cost_usd"])
    assert FORECAST not in run_once(cli, "--quiet")
    latest = json.loads(cli("runs", "--json").splitlines()[0])
    assert FORECAST in cli("runs", "replay", latest["run_id"])
    report = json.loads(cli("report", "--json"))
    assert "Forecast" in [notice["kind"] for notice in report["notices"]]
    stats = json.loads(cli("runs", "--stats", "--json"))
    assert 6 == stats["runs"]
    (loop,) = stats["loop"]
    assert ("run", 1.0, 1.5) == (loop["name"], loop["success"], loop["total_cost_usd"])
    (prompts,) = stats["prompts"]
    assert 8 == len(prompts["name"])
    assert {"planning", "implementing", "reviewing"} == {row["name"] for row in stats["role"]}


def test_stats_of_no_runs(here: Path, cli: Cli) -> None:
    """Without runs there is a sentence, and with `--json` an object without rows."""
    assert "There are no finished runs yet.\n" == cli("runs", "--stats")
    told = json.loads(cli("runs", "--stats", "--json"))
    assert (0, []) == (told["runs"], told["loop"])
    (here / ".cuggino/journal").mkdir(parents=True)
    (here / ".cuggino/journal/x.jsonl").write_text("x\ny\n")
    assert "no finished runs yet (1 cannot be read)." in cli("runs", "--stats")


TABLE = """\
LOOP          RUNS  SUCCESS  ITER   COST  TOTAL    TIME
run              2     100%     1  $1.25  $2.50  1m 40s

ROLE          RUNS  SUCCESS  ITER   COST  TOTAL    TIME
implementing     2     100%     1  $1.25  $2.50      0s
planning         2     100%     1                    0s

"""


def test_stats_as_tables(here: Path, cli: Cli) -> None:
    """Each group is a table, and the columns are explained."""
    for run_id in (ONE, TWO):
        record(here, run_id, *SAID, *APPROVED, agent="a\x1b[2Jb")
    shown = cli("runs", "list", "--stats")
    assert shown.startswith(TABLE)
    assert "a␛[2Jb" in shown
    assert "\nunknown " in shown, "journals of older versions name no prompts"
    assert "SUCCESS: approved" in shown


def test_narrow_tables(here: Path, cli: Cli) -> None:
    """Long names are cut."""
    record(here, ONE, *SAID, *APPROVED, agent="an-agent-" * 20)
    lines = cli("runs", "--stats").splitlines()
    assert any("..." in line for line in lines)
    assert max(map(len, lines)) <= 100
