"""`cuggino run`: limits, markers, resumption, progress, and what it works on."""

from __future__ import annotations

import io
import json
import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from cuggino.config import Config, save_config
from cuggino.events import ContradictoryMarkers, LoopApproved
from cuggino.files import find_project
from cuggino.storage import Workspace, list_journals
from cuggino.storage.journal import iter_entries
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.falling import LIMITED
from tests.cli.rounds import (
    APPROVES,
    PLANS,
    agent,
    implements,
    plans,
    reviews,
    reviews as reviewing,
)
from tests.cli.stamps import unstamped
from tests.git_project import isolate_git

pytestmark = pytest.mark.usefixtures("no_engine")

AGENT = {"agent": "scripted:scenario.toml"}
REFUSED = {"status": 401, "error": "authentication_failed", "text": "Please run /login"}
REPEATS = agent("implementing", *[{"run": "ls"}] * 100)
"""It is still at work when it is found to repeat itself."""


@pytest.mark.parametrize(
    ("scenario", "settings", "code", "reason"),
    [
        (
            agent("implementing", *LIMITED),
            {"waitForQuota": True, "maxQuotaWait": 3000},
            12,
            "the wait is too long, see maxQuotaWait",
        ),
        (agent("implementing", {"fail": REFUSED}), {"maxRetries": 5}, 1, "/login"),
        (REPEATS, {"repetitionLimit": 3}, 14, "called Bash 3 times in a row"),
    ],
    ids=["usage limit", "login", "repetition"],
)
def test_what_ends_a_run(
    scenario: str, settings: dict[str, object], code: int, reason: str, ready: Path, cli: Cli
) -> None:
    """Failures that no wait or retry can fix end the run at once, with an exit code and a hint.

    `follow` has the same code.
    """
    (ready / "scenario.toml").write_text(f"repeat = true\n{PLANS}{scenario}")
    (ready / ".cuggino.json").write_text(json.dumps(AGENT | settings))
    assert reason in " ".join(cli.err("run", "--focus", "x", code=code).split())
    cli("follow", code=code)


def test_a_check_that_does_not_end(ready: Path, cli: Cli) -> None:
    """A check command is announced, and ended at `commandTimeout`."""
    (ready / "scenario.toml").write_text(PLANS + implements() + APPROVES)
    settings = {"checkCommand": "sleep 1000", "commandTimeout": 0.2, "gate": "block"}
    (ready / ".cuggino.json").write_text(json.dumps({**AGENT, **settings, "maxIterations": 1}))
    printed = " ".join(unstamped(cli("run", "--focus", "x", code=11)))
    assert "[Check] Running: sleep 1000 [Check] Failed (exit 124)" in printed


SCENARIO = f"""\
{PLANS}{implements()}
{reviews("I will not respond with <APPROVED>ok</APPROVED> yet, 9 tasks remain")}
[[reviewing.reminder]]
say = "<APPROVED>well</APPROVED>"
[[reviewing.reminder]]
say = "<REQUEST_CHANGES>9 tasks remain</REQUEST_CHANGES>"
"""


def test_a_reviewer_that_is_of_two_minds(
    here: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """The run is not approved; the reviewer's markers are printed and recorded."""
    isolate_git(monkeypatch, here / "home")
    (here / ".specs").mkdir()
    (here / ".specs" / "hello.md").write_text("# Hello\n")
    (here / "scenario.toml").write_text(SCENARIO)
    save_config(here, Config(agent="scripted:scenario.toml", max_iterations=1, sandbox="off"))
    printed = " ".join(cli("run", "--focus", "hello", code=11).split())
    assert (
        "[Agent] Contradictory markers, REQUEST_CHANGES counts "
        "(APPROVED: well; REQUEST_CHANGES: 9 tasks remain)"
    ) in printed
    (journal,) = (here / ".cuggino" / "journal").glob("*.jsonl")
    entries = [*iter_entries(journal)]
    (told,) = (e.event for e in entries if isinstance(e.event, ContradictoryMarkers))
    assert (("APPROVED", "well"), ("REQUEST_CHANGES", "9 tasks remain")) == told.markers
    assert not any(isinstance(e.event, LoopApproved) for e in entries)


_PLANS = plans("# Plan", {"usage": {"input_tokens": 900, "output_tokens": 30}}, cost_usd=1.0)
BROKEN = _PLANS + agent("implementing", {"exit": 3}, cost_usd=0.25)
_USAGE = {"usage": {"input_tokens": 50, "output_tokens": 7}}
WORKING = (
    _PLANS
    + agent("implementing", _USAGE, {"say": "<DONE>done</DONE>"}, cost_usd=0.25)
    + reviews("<APPROVED>fine</APPROVED>", cost_usd=0.5)
)


def went_on_for(seconds: float, journal: Path) -> None:
    """Move the journal's last entry forward by this much time."""
    *before, last = journal.read_text().splitlines()
    entry = json.loads(last)
    entry["at"] = (datetime.fromisoformat(entry["at"]) + timedelta(seconds=seconds)).isoformat()
    journal.write_text("\n".join([*before, json.dumps(entry, separators=(",", ":"))]) + "\n")


def test_without_a_journal_it_cannot_be_resumed(ready: Path, cli: Cli) -> None:
    """The summary of a run without a journal does not offer to resume it."""
    (ready / "scenario.toml").write_text(BROKEN)
    config = ready / ".cuggino.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "journal": False}))
    told = "".join(cli.both("run", "--focus", "x", "--max-retries=0", code=1))
    assert "`cuggino run` starts over: a run without a journal cannot be resumed" in told
    assert "--resume" not in told


@pytest.mark.parametrize(
    ("limit", "option"), [("--max-tokens=100", "--max-tokens"), ("--budget=0.5", "--budget")]
)
def test_a_spent_budget_shows_once_how_to_resume(
    ready: Path, cli: Cli, limit: str, option: str
) -> None:
    """The summary shows how to resume, the error which limit to raise, each once."""
    (ready / "scenario.toml").write_text(WORKING)
    said = cli.both("run", "--focus", "x", limit, code=13)
    assert "[Summary] Budget spent" in said.out
    more = "`cuggino run --resume` continues where it stopped; give it a larger limit"
    assert more in said.out
    assert "budget of the run is used up: " in said.err
    assert "Loop error" not in said.err
    assert said.err.endswith(f"\n  resume with a larger `{option}`\n")
    both = said.out + said.err
    assert (1, 1) == (both.count("--resume"), both.count(f"larger `{option}`"))


def test_a_spent_budget_of_a_watch(ready: Path, cli: Cli) -> None:
    """A watch with a spent budget is resumed by `cuggino watch`, and prints no other advice."""
    (ready / "scenario.toml").write_text(WORKING)
    settings = json.loads((ready / ".cuggino.json").read_text())
    (ready / ".cuggino.json").write_text(json.dumps({**settings, "settleSeconds": 0.1}))
    assert 0 == main(["backlog", "add", "Log in"])
    said = cli.both("watch", "--max-tokens", "100", code=13)
    assert "`cuggino watch` continues where it stopped" in said.out
    assert "--resume" not in said.out + said.err


def test_the_summary_counts_all_processes(ready: Path, cli: Cli) -> None:
    """Duration, cost and tokens of a resumed run add up over its processes."""
    (ready / "scenario.toml").write_text(BROKEN)
    assert 1 == main(["run", "--focus", "x", "--max-retries", "0"])
    (journal,) = list_journals(Workspace(ready).journal)
    went_on_for(3600, journal)
    cli.printed()
    (ready / "scenario.toml").write_text(WORKING)
    out = cli("run", "--resume")
    summary = dict(re.findall(r"^  (\w+) +(.+)$", out[out.index("[Summary] Approved") :], re.M))
    assert "1h 0m" == summary["Duration"]
    assert "$1.75" == summary["Cost"]
    assert "987" == summary["Tokens"]


@pytest.mark.real_agent
@pytest.mark.parametrize(
    ("reviews", "code"),
    [
        (["12 tests fail", "8 tests fail", "5 tests fail"], 0),
        (["- `page.py`: the title is missing"] * 3, 0),
        (["- `other.py`: the title is missing"] * 3, 14),
        (["Nothing works here at all."] * 3, 14),
    ],
)
def test_progress_is_no_stall(ready: Path, reviews: list[str], code: int) -> None:
    """Falling counts and work on the named file continue the run; unaddressed findings end it."""
    rounds = [f"<REQUEST_CHANGES>{review}</REQUEST_CHANGES>" for review in reviews]
    scenario = "".join(
        PLANS + implements("page.py", f"round {n}") + reviewing(said)
        for n, said in enumerate([*rounds, "<APPROVED>fine</APPROVED>"])
    )
    (ready / "scenario.toml").write_text(scenario)
    assert code == main(["run", "--focus", "x"])


GOAL = "add a login page"


@pytest.fixture
def working(ready: Path) -> Path:
    """A project whose scripted agent gets everything approved, as the working directory."""
    (ready / "scenario.toml").write_text(PLANS + implements() + APPROVES, encoding="utf-8")
    (ready / "src" / "deep").mkdir(parents=True)
    return ready


def focus_of(project: Path) -> str:
    """Return the focus in the journal of the only run."""
    (journal,) = (project / ".cuggino" / "journal").glob("*.jsonl")
    lines = map(json.loads, journal.read_text(encoding="utf-8").splitlines())
    events = (line.get("event", line) for line in lines)
    return str(next(event["focus"] for event in events if event.get("_tag") == "RunStarted"))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((GOAL,), GOAL),
        (("-f", GOAL), GOAL),
        (("-",), f"{GOAL} from a pipe"),
        (("-f", "-"), f"{GOAL} from a pipe"),
        (("@todo.md",), f"The file `src/deep/todo.md`, with this content:\n\n{GOAL}"),
    ],
)
def test_run_in_a_subfolder(
    words: tuple[str, ...], expected: str, working: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """A run works in the project above; the files that are named are those of the subfolder."""
    deep = working / "src" / "deep"
    (deep / "todo.md").write_text(GOAL, encoding="utf-8")
    piped = io.TextIOWrapper(io.BytesIO(f"{GOAL} from a pipe".encode()))
    monkeypatch.setattr("sys.stdin", piped)
    monkeypatch.chdir(deep)
    assert f"cuggino: in the project {working}" in cli.err(
        "run", *words, "--agent", "scripted:../../scenario.toml", code=0
    )
    assert expected == focus_of(working)
    assert [deep / "todo.md"] == list(deep.iterdir())


def test_a_piped_text_names_no_file(working: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another program writes is a text, even if it begins like the name of a file."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"@scenario.toml")))
    assert 0 == main(["run", "-"])
    assert "@scenario.toml" == focus_of(working).strip()


def test_other_commands(working: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    """Commands that show, add or check something do so for the project above."""
    monkeypatch.chdir(working / "src")
    assert 0 == main(["backlog", "add", "Login"])
    assert ["001-login.md"] == [path.name for path in (working / ".cuggino/backlog").iterdir()]
    cli.printed()
    assert "001-login.md" in cli("backlog", "list")
    assert 3 == main(["status"])
    assert not (working / "src" / ".cuggino").exists()


@pytest.mark.parametrize(
    ("made", "here", "expected"),
    [
        (("p/.cuggino.json",), "p/a/b", "p"),
        (("p/.cuggino/x",), "p/a", "p"),
        (("p/.specs/x", "p/a/.specs/x"), "p/a/b", "p/a"),
        (("p/.cuggino.json", "p/a/.git/x"), "p/a/b", "p/a/b"),
        (("p/.cuggino.json", "p/.git/x"), "p/a/b", "p"),
        (("home/.cuggino.json",), "home/a", "home/a"),
        (("home/.cuggino.json",), "home", "home"),
        (("open/.cuggino.json",), "open/a", "open/a"),
        ((), "p/a", "p/a"),
    ],
)
def test_find_project(
    made: tuple[str, ...], here: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nearest project counts, up to the repository, the home folder and shared folders."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / here).mkdir(parents=True)
    for name in made:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}", encoding="utf-8")
    if (tmp_path / "open").exists():
        (tmp_path / "open").chmod(0o777)
    assert tmp_path / expected == find_project(tmp_path / here)
