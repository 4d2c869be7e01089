"""Approvals that no check decided on, in every view."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cuggino.config import Config, save_config
from cuggino.events import RunEnded
from cuggino.runs import Runs
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.rounds import APPROVES, PLANS, implements
from tests.git_project import GitProject, isolate_git

RUN = PLANS + implements("a.txt", "a\n") + APPROVES


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitProject:
    isolate_git(monkeypatch, tmp_path / "home")
    made = GitProject(tmp_path / "project")
    made.write(".specs/a.md", "# A\n")
    made.write(".gitignore", ".cuggino/\nscenario.toml\n")
    made.write("scenario.toml", RUN)
    made.git("add", "-A")
    made.git("commit", "--quiet", "--message=begin")
    monkeypatch.chdir(made.root)
    return made


def _run(project: GitProject, *options: str, **settings: Any) -> None:
    config = {"agent": "scripted:scenario.toml", "maxIterations": 1, "sandbox": "off", **settings}
    save_config(project.root, Config.model_validate(config))
    assert 0 == main(["run", "--focus", "a", *options])


def _printed(cli: Cli, *args: str) -> str:
    cli.printed()
    assert main([*args]) in (0, 3)  # 3: `status` found nothing at work
    return " ".join(cli.printed().out.split())


UNCHECKED: list[dict[str, Any]] = [{}, {"checkCommand": "test -d .specs"}]
CHECKED: list[dict[str, Any]] = [
    {"checkCommand": "test -d .specs", "gate": "block"},
    {"checkCommand": "test -d .specs", "gate": "clean"},
]


@pytest.mark.parametrize("settings", UNCHECKED)
def test_unchecked(settings: dict[str, Any], project: GitProject, cli: Cli) -> None:
    """Without a check that decides, each view says so."""
    _run(project, **settings)
    ended = " ".join(cli.printed().out.split())
    assert "[Loop] Implementation approved, unchecked" in ended
    assert "[Summary] Approved, unchecked" in ended
    assert 'set checkCommand and "gate": "block"' in ended
    told = "[Check] An approval counts even if `test -d .specs` fails (gate: context)"
    assert ("checkCommand" in settings) == (told in ended)
    (run,) = Runs(project.root).all()
    for args in (["runs"], ["runs", "show", run.short_id], ["status"]):
        assert "approved, unchecked" in _printed(cli, *args), args
    assert "Approved, unchecked" in _printed(cli, "runs", "replay", run.short_id)
    for args in (["runs", "list", "--json"], ["runs", "show", run.short_id, "--json"]):
        found = json.loads(_printed(cli, *args))
        assert ("approved", False) == (found["state"], found["checked"])
    last = json.loads(_printed(cli, "status", "--json"))["last"]
    assert ("approved", False) == (last["state"], last["checked"])
    assert "approved, unchecked" in _page(project, cli)


@pytest.mark.parametrize("settings", CHECKED)
def test_checked(settings: dict[str, Any], project: GitProject, cli: Cli) -> None:
    """With a gate, an approval is one, and nothing is said of it."""
    _run(project, **settings)
    assert "unchecked" not in cli.printed().out
    found = json.loads(_printed(cli, "runs", "list", "--json"))
    assert ("approved", True) == (found["state"], found["checked"])
    assert "unchecked" not in _printed(cli, "runs") + _page(project, cli)


def test_events(project: GitProject, cli: Cli) -> None:
    """The events of a run say that its check does not decide, and that it cannot fail."""
    check = "test -d .specs || true"
    _run(project, "--json", checkCommand=check)
    events = [json.loads(line) for line in cli.printed().out.splitlines()]
    tags = [event["_tag"] for event in events]
    assert tags.index("CheckCannotFail") < tags.index("IterationStart")
    assert tags.count("CheckCannotFail") == tags.count("CheckDoesNotDecide") == 1
    found = next(event for event in events if event["_tag"] == "CheckCannotFail")
    assert (check, "`|| true` hides the failure of `test -d .specs`") == (
        found["command"],
        found["why"],
    )
    assert False is events[-1]["checked"]


def test_older_journals(project: GitProject, cli: Cli) -> None:
    """A journal without the field shows the plain word: it is unknown whether a check decided."""
    _run(project)
    (path,) = (project.root / ".cuggino/journal").glob("*.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        line["event"].pop("checked", None)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert None is RunEnded.model_validate(lines[-1]["event"]).checked
    assert "unchecked" not in _printed(cli, "runs") + _page(project, cli)
    found = json.loads(_printed(cli, "runs", "list", "--json"))
    assert ("approved", None) == (found["state"], found["checked"])


def _page(project: GitProject, cli: Cli) -> str:
    page = project.root.parent / "page.html"
    _printed(cli, "report", "--output", str(page))
    return page.read_text(encoding="utf-8")
