"""The sandbox that a run reports, and refusals to start without one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from reactivex import operators as ops

from cuggino import Runtime, run
from cuggino.events import Event, SandboxChosen, WatchItemCompleted, parse_event
from cuggino.sandbox import Boundary, boundary
from cuggino.sandbox.loader import landlock_version
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.test_views import project, scenario
from tests.git_project import GitProject

__all__ = ["project"]

_ENDING = """
[[planning]]
[[planning.steps]]
write = "$CUGGINO_PLAN_FILE"
text = "1. one"
[[planning.steps]]
say = "<PLAN_COMPLETE>One task.</PLAN_COMPLETE>"

[[implementing]]
steps = [{ say = "<DONE>Done.</DONE>" }]

[[reviewing]]
steps = [{ say = "<APPROVED>Good.</APPROVED>" }]
"""


@pytest.fixture
def landlock_only(project: GitProject, monkeypatch: pytest.MonkeyPatch) -> GitProject:
    """The project on a machine whose user namespaces are disabled."""
    if not landlock_version():
        pytest.skip("Landlock is not available")
    only = Boundary(engine="landlock", reason="bubblewrap is not permitted")
    monkeypatch.setattr(boundary, "_probed", lambda *_: only)
    (project.root / ".cuggino.json").write_text('{"guard": "off"}')
    return project


@pytest.mark.parametrize("command", ["run", "watch", "deliver", "loop"])
def test_required_without_an_engine(
    command: str, landlock_only: GitProject, tmp_path: Path, cli: Cli
) -> None:
    """`--sandbox require` starts nothing, not even a journal, if a role would not be confined."""
    (landlock_only.root / "SPEC.md").write_text("# Spec\n")
    landlock_only.git("switch", "--quiet", "--create", "work")
    words = [command, "--sandbox", "require", "--agent", scenario(tmp_path, _ENDING)]
    words += {"run": ["--focus", "a page"], "loop": ["--auto"]}.get(command, [])
    error = cli.err(*words)
    role = {"deliver": "initializer", "loop": "build"}.get(command, "implementing")
    assert f'the sandbox is required, but nothing confines the role "{role}": bubble' in error
    assert "cuggino doctor" in error
    assert not (landlock_only.root / ".cuggino").exists()


def test_landlock_confines_the_roles_that_look(
    landlock_only: GitProject, tmp_path: Path, cli: Cli
) -> None:
    """The fallback is reported once with its reason, and the run works in it."""
    (landlock_only.root / ".cuggino.json").write_text('{"guard": "off", "sandboxHide": ["~/.x"]}')
    agent = scenario(tmp_path, _ENDING)
    assert 0 == main(["run", "--agent", agent, "--focus", "a page", "--json"])
    [chosen] = sandboxes(cli)
    assert chosen == SandboxChosen(
        engine="landlock",
        held=("planning", "reviewing"),
        not_held=("implementing",),
        reason="bubblewrap is not permitted; sandboxHide has no effect without bubblewrap",
    )


def test_without_any_engine(
    landlock_only: GitProject,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
) -> None:
    """An unsandboxed run reports the reason once; one with `--no-sandbox` reports nothing."""
    none = Boundary(reason="nothing works here")
    monkeypatch.setattr(boundary, "_probed", lambda *_: none)
    words = ["run", "--focus", "a page", "--agent", scenario(tmp_path, _ENDING), "--json"]
    assert 0 == main(words)
    [chosen] = sandboxes(cli)
    roles = ("planning", "implementing", "reviewing")
    assert chosen == SandboxChosen(
        engine="none", held=(), not_held=roles, reason="nothing works here"
    )
    assert 0 == main([*words, "--no-sandbox"])
    assert [] == sandboxes(cli)


def test_a_resumed_run_reports_its_sandbox_anew(
    project: GitProject, tmp_path: Path, cli: Cli
) -> None:
    """Each process does, once and first; no event of the run is lost or repeated for that."""
    (project.root / ".cuggino.json").write_text('{"guard": "off"}')
    words = ["run", "--agent", scenario(tmp_path, _ENDING.partition("[[implementing]]")[0])]
    assert 1 == main([*words, "--focus", "a page", "--json"])
    first = events(cli)
    assert isinstance(first[0], SandboxChosen)
    assert first[0].held == ("planning", "implementing", "reviewing")
    scenario(tmp_path, _ENDING)
    assert 0 == main(["run", "--resume", "--json"])
    second = events(cli)
    assert ["RunResumed", "SandboxChosen"] == [event.tag for event in second[:2]]
    [journal] = (project.root / ".cuggino/journal").glob("*.jsonl")
    kinds = [json.loads(line)["event"]["_tag"] for line in journal.read_text().splitlines()]
    starts = [kind for kind in kinds if kind.endswith("Start") or kind == "SandboxChosen"]
    phases = ["IterationStart", "PlanningStart", "ImplementingStart", "ReviewingStart"]
    assert ["SandboxChosen", *phases[:3], "SandboxChosen", *phases[3:]] == starts


def test_a_watch_reports_its_sandbox_once(project: GitProject, tmp_path: Path) -> None:
    """All items share it; the journal of each names it."""
    (project.root / ".cuggino.json").write_text('{"guard": "off", "settleSeconds": 0.1}')
    for name in ("1.md", "2.md"):
        item = project.root / ".cuggino/backlog" / name
        item.parent.mkdir(parents=True, exist_ok=True)
        item.write_text("A page.\n")
    runtime = Runtime.live(cwd=project.root, agent=scenario(tmp_path, _ENDING + _ENDING))
    seen: list[Event] = []

    def is_open(event: Event) -> bool:
        seen.append(event)
        return not (isinstance(event, WatchItemCompleted) and event.filename == "2.md")

    run(runtime.watch().pipe(ops.take_while(is_open)), lambda _: None)
    [chosen] = [event for event in seen if isinstance(event, SandboxChosen)]
    assert chosen is seen[0]
    assert ("planning", "implementing", "reviewing") == chosen.held
    journals = [*(project.root / ".cuggino/journal").glob("*.jsonl")]
    assert [1, 1, 1] == [path.read_text().count('"SandboxChosen"') for path in journals]


_READING = """
[[planning]]
[[planning.steps]]
write = "$CUGGINO_PLAN_FILE"
text = "1. one"
[[planning.steps]]
run = "cat ~/.ssh/id > $(dirname $CUGGINO_PLAN_FILE)/x && cat $(dirname $CUGGINO_PLAN_FILE)/x"
[[planning.steps]]
say = "<PLAN_COMPLETE>One task.</PLAN_COMPLETE>"

[[implementing]]
[[implementing.steps]]
run = "touch work; cp -r ~/.ssh got; cat ~/.ssh/id .env; readlink -f ~/.ssh"
[[implementing.steps]]
say = "<DONE>Done.</DONE>"

[[reviewing]]
[[reviewing.steps]]
run = "cat ~/.ssh/id .env"
[[reviewing.steps]]
say = "<APPROVED>Good.</APPROVED>"
"""


@pytest.mark.real_agent
def test_named_paths(
    project: GitProject,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
) -> None:
    """Neither agents of any role nor commands and hooks of a run read them."""
    home = tmp_path / "home"
    for file in (home / ".ssh/id", project.root / ".env"):
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text("a secret\n")
    monkeypatch.setenv("HOME", str(home))
    (project.root / ".gitignore").write_text(".env\n")
    hook = project.root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ncat ~/.ssh/id > hooked\ntrue\n")
    hook.chmod(0o755)
    config = {"guard": "off", "commit": True, "checkCommand": "cat ~/.ssh/id .env"}
    config["sandboxHide"] = ["~/.ssh", str(project.root / ".env")]
    (project.root / ".cuggino.json").write_text(json.dumps(config))
    words = ["run", "--focus", "a page", "--agent", scenario(tmp_path, _READING)]
    said = cli(*words, "--json")
    assert '"CheckCommandOutput"' in said
    assert "No such file" in said
    assert "a secret" not in said
    assert "" == (project.root / "hooked").read_text()
    assert not (project.root / "got/id").exists()
    del config["sandboxHide"]
    (project.root / ".cuggino.json").write_text(json.dumps(config))
    assert 0 == main([*words, "--json"])
    assert cli.printed().out.count("a secret") >= 3, "the scenario reads them"


@pytest.mark.parametrize(
    ("hide", "said"),
    [
        ([".ssh"], 'must be a whole path such as "~/.ssh" or "/srv/keys"'),
        (["~/.ssh "], 'must be a whole path such as "~/.ssh" or "/srv/keys"'),
        (["/"], '"/": cannot be hidden, as every program reads it'),
        (["/usr/"], '"/usr/": cannot be hidden, as every program reads it'),
        (["."], 'must be a whole path such as "~/.ssh" or "/srv/keys"'),
        (["PROJECT"], "sandboxHide names the project itself: "),
    ],
)
def test_paths_that_cannot_be_hidden(
    hide: list[str],
    said: str,
    project: GitProject,
    tmp_path: Path,
    cli: Cli,
) -> None:
    """One sentence names the error in the value, and nothing is started."""
    named = [path.replace("PROJECT", str(project.root)) for path in hide]
    config = {"guard": "off", "sandboxHide": named}
    (project.root / ".cuggino.json").write_text(json.dumps(config))
    error = [
        line
        for line in cli.err(
            "run", "--focus", "x", "--agent", scenario(tmp_path, _ENDING)
        ).splitlines()
        if line.startswith("cuggino: ")
    ]
    assert said in error[-1]
    assert "sandboxHide" in error[-1]
    assert not (project.root / ".cuggino").exists()


def events(cli: Cli) -> list[Event]:
    """Return the events printed since the last call."""
    return [parse_event(line) for line in cli.printed().out.splitlines()]


def sandboxes(cli: Cli) -> list[Event]:
    return [event for event in events(cli) if isinstance(event, SandboxChosen)]
