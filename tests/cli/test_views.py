"""Whole runs with each role in its view, and the sandbox that a run reports."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from reactivex import operators as ops

from cuggino import Runtime, run
from cuggino.events import Event, SandboxChosen, WatchItemCompleted, parse_event
from cuggino.sandbox import Boundary, boundary
from cuggino.sandbox.loader import landlock_version
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.rounds import APPROVES, PLANS, agent, implements, plans, reviews, works
from tests.git_project import GitProject
from tests.sandbox.arena import needs_bubblewrap

_RUN = (
    plans("# Plan\n\n1. one\n", {"run": "touch evil; touch .specs/evil; echo x > .git/config"})
    + works("touch one.py; touch .specs/evil .cuggino/evil; cat .cuggino/wip/*.md > seen; true")
    + reviews("<APPROVED>Good.</APPROVED>", {"run": "ls one.py && touch evil; rm one.py"})
)
_MADE = {"id": "DL-1", "description": "a page", "acceptanceCriteria": ["it is there"]}
_DELIVERY = agent(
    "initializer", {"tool": "create_deliverable", "input": {"deliverables": [_MADE]}}
) + agent(
    "coding",
    {"run": "touch page; echo broken > .autonoe/status.json; true"},
    {
        "tool": "set_deliverable_status",
        "input": {"deliverableId": "DL-1", "status": "passed"},
    },
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitProject:
    made = GitProject(tmp_path / "project")
    (made.root / ".specs").mkdir()
    (made.root / ".specs/page.md").write_text("# Page\n\nA page.\n")
    made.git("add", "--all")
    made.git("commit", "--quiet", "-m", "one")
    needs_bubblewrap(made.root)
    monkeypatch.chdir(made.root)
    return made


def scenario(folder: Path, text: str) -> str:
    path = folder / "scenario.toml"
    path.write_text(text)
    return f"scripted:{path}"


@pytest.mark.usefixtures("no_session_pause")
def test_a_delivery_in_views(project: GitProject, tmp_path: Path) -> None:
    """The tools write the status, which no program of the agent can."""
    config = {"guard": "off", "sandbox": "require"}
    (project.root / ".cuggino.json").write_text(json.dumps(config))
    (project.root / "SPEC.md").write_text("# Spec\n")
    assert 0 == main(["deliver", "--agent", scenario(tmp_path, _DELIVERY)])
    status = json.loads((project.root / ".autonoe/status.json").read_text())
    assert [True] == [item["passed"] for item in status["deliverables"]]
    assert (project.root / "page").exists()


_HONEST = re.sub(r"^run = .*", 'run = "touch work"', _RUN, flags=re.MULTILINE)


def configure(project: GitProject, **config: object) -> None:
    (project.root / ".cuggino.json").write_text(json.dumps({"guard": "off", **config}))


def test_without_a_sandbox_commands_have_no_view(project: GitProject, tmp_path: Path) -> None:
    """`--no-sandbox` is for the commands of a run, too."""
    check, hook = tmp_path / "check", tmp_path / "hook"
    configure(project, checkCommand=f"touch {check}", commit=True)
    install(project, f"touch {hook}")
    own = scenario(tmp_path, _HONEST)
    assert 0 == main(["run", "--no-sandbox", "--agent", own, "--focus", "a page"])
    assert check.exists()
    assert hook.exists()


def install(project: GitProject, command: str) -> None:
    """Install a commit hook as husky does: git runs the file in the work tree."""
    hook = project.root / ".husky/pre-commit"
    hook.parent.mkdir()
    hook.write_text(f"#!/bin/sh\n{command}\ntrue\n")
    hook.chmod(0o755)
    project.git("config", "core.hooksPath", ".husky")


def test_roles_checks_and_hooks_of_a_run_have_their_views(
    project: GitProject, tmp_path: Path
) -> None:
    """The plan arrives, the implementer's work stays, and nothing that a role may not write.

    What an agent has written, as a test or a hook, has no more rights when it runs.
    """
    outside = tmp_path / "outside"
    evil = f"echo evil > .specs/page.md; touch {{}} {outside}"
    configure(project, sandbox="require", commit=True, checkCommand=evil.format("checked"))
    install(project, evil.format("hooked"))
    before = (project.root / ".git/config").read_text()
    assert 0 == main(["run", "--agent", scenario(tmp_path, _RUN), "--focus", "a page"])
    for name in ("one.py", "checked", "hooked"):
        assert (project.root / name).exists()
    assert "1. one" in (project.root / "seen").read_text()
    assert [] == [path for path in project.root.rglob("evil*") if ".git/" not in str(path)]
    assert before == (project.root / ".git/config").read_text()
    assert "# Page\n\nA page.\n" == (project.root / ".specs/page.md").read_text()
    assert not outside.exists()
    assert "one.py" in project.git("log", "--format=", "--name-only").split()


@pytest.mark.real_agent
def test_the_first_setup_is_the_users_own(project: GitProject, tmp_path: Path) -> None:
    """The first one may configure git, as husky does; later ones run what agents have written.

    A changed command is a new one.
    """
    own = scenario(tmp_path, _HONEST)
    writes = "git config --local a.b 1 && touch .git/hooks/pre-push"

    def run(setup: str) -> None:
        configure(project, setupCommand=setup)
        assert 0 == main(["run", "--agent", own, "--focus", "a page"])

    run(writes)
    assert "1" == project.git("config", "a.b").strip()
    (project.root / ".git/hooks/pre-push").unlink()
    run(writes)
    assert not (project.root / ".git/hooks/pre-push").exists()
    run(f"{writes}; true")
    assert (project.root / ".git/hooks/pre-push").exists()


def test_a_setup_that_has_failed_is_the_users_own_once_a_run(
    project: GitProject, tmp_path: Path
) -> None:
    """In the second iteration agents have worked, so a setup that has failed gets a view."""
    marker = tmp_path / "setups"
    configure(project, setupCommand=f"echo x >> {marker}; false", maxIterations=2)
    changes = _HONEST.replace(
        "<APPROVED>Good.</APPROVED>", "<REQUEST_CHANGES>More.</REQUEST_CHANGES>"
    )
    own = scenario(tmp_path, changes)
    main(["run", "--agent", own, "--focus", "a page"])
    assert "x\n" == marker.read_text()


def told(cli: Cli, kind: str) -> list[tuple[str, list[str]]]:
    """Return stage and paths of the events of this kind that were printed."""
    events = map(json.loads, filter(None, cli.printed().out.splitlines()))
    return [(event["role"], event["paths"]) for event in events if event["_tag"] == kind]


@pytest.mark.real_agent
def test_what_commands_change_without_a_view_is_put_back(
    project: GitProject, tmp_path: Path, cli: Cli
) -> None:
    """Checks, later setups and hooks write no specifications without a sandbox, either."""
    evil = "echo evil > .specs/page.md"
    configure(project, checkCommand=f"{evil}; echo {{}} > .mcp.json", commit=True)
    install(project, f"{evil}; git add -f .specs/page.md")
    own = scenario(tmp_path, _HONEST)
    # A hook that adds specifications each time: the work is never committed.
    assert 1 == main(["run", "--no-sandbox", "--json", "--agent", own, "--focus", "a page"])
    put_back = told(cli, "RoleViolated")
    assert ("check", [".mcp.json", ".specs/page.md"]) in put_back
    assert ("commit", [".specs/page.md", "HEAD:.specs/page.md"]) in put_back
    assert "# Page\n\nA page.\n" == (project.root / ".specs/page.md").read_text()
    assert "# Page\n\nA page.\n" == project.git("show", "HEAD:.specs/page.md")
    assert not (project.root / ".mcp.json").exists()


@pytest.mark.real_agent
def test_a_new_name_in_a_view_is_put_back(project: GitProject, tmp_path: Path, cli: Cli) -> None:
    """No view protects a name that does not exist: what a check or an agent made is taken away."""
    configure(project, checkCommand="echo '{}' > .mcp.json", commit=True)
    install(project, "mkdir -p .gemini; echo x > .gemini/x")
    own = scenario(tmp_path, _HONEST)
    assert 0 == main(["run", "--json", "--agent", own, "--focus", "a page"])
    put_back = told(cli, "RoleViolated")
    assert ("check", [".mcp.json"]) in put_back
    assert ("commit", [".gemini/x"]) in put_back
    assert not (project.root / ".mcp.json").exists()
    assert not (project.root / ".gemini/x").exists()


_LOOP = agent("plan", {"say": "Nothing to plan."}) + agent(
    "build", {"run": "touch lopen.loop.done"}
)


def test_verification_commands_have_a_view(project: GitProject, tmp_path: Path, cli: Cli) -> None:
    """Commands that verify a build are confined, as they run built code."""
    outside = tmp_path / "outside"
    configure(project)
    verify = f"touch seen {outside}; echo '{{}}' > .mcp.json; test -e lopen.loop.done"
    (project.root / ".lopen").mkdir()
    loop = {"verify": {"build": verify}}
    (project.root / ".lopen/loop-config.json").write_text(json.dumps(loop))
    for name in ("PLAN", "BUILD"):
        (project.root / f"{name}.PROMPT.md").write_text("Work.\n")
    own = scenario(tmp_path, _LOOP)
    assert 0 == main(["loop", "--allow-main", "--json", "--agent", own])
    assert (project.root / "seen").exists()
    assert not outside.exists()
    assert [("verify", [".mcp.json"])] == told(cli, "RoleViolated")


_ENDING = PLANS + implements() + APPROVES


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
    own = scenario(tmp_path, _ENDING)
    assert 0 == main(["run", "--agent", own, "--focus", "a page", "--json"])
    [chosen] = sandboxes(cli)
    assert chosen == SandboxChosen(
        engine="landlock",
        held=("planning", "reviewing"),
        not_held=("implementing",),
        reason="bubblewrap is not permitted; sandboxHide has no effect without bubblewrap",
    )


def test_without_any_engine(
    landlock_only: GitProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
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
    words = ["run", "--agent", scenario(tmp_path, PLANS)]
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


_READING = (
    plans(
        "1. one",
        {
            "run": "cat ~/.ssh/id > $(dirname $CUGGINO_PLAN_FILE)/x && "
            "cat $(dirname $CUGGINO_PLAN_FILE)/x"
        },
    )
    + works("touch work; cp -r ~/.ssh got; cat ~/.ssh/id .env; readlink -f ~/.ssh")
    + reviews("<APPROVED>Good.</APPROVED>", {"run": "cat ~/.ssh/id .env"})
)


@pytest.mark.real_agent
def test_named_paths(
    project: GitProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
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
    hide: list[str], said: str, project: GitProject, tmp_path: Path, cli: Cli
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
