"""Whole runs of the command, with each role in its view of the project."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.git_project import GitProject
from tests.sandbox.arena import needs_bubblewrap

_RUN = """
[[planning]]
[[planning.steps]]
write = "$CUGGINO_PLAN_FILE"
text = "# Plan\\n\\n1. one\\n"
[[planning.steps]]
run = "touch evil; touch .specs/evil; echo x > .git/config"
[[planning.steps]]
say = "<PLAN_COMPLETE>One task.</PLAN_COMPLETE>"

[[implementing]]
[[implementing.steps]]
run = "touch one.py; touch .specs/evil .cuggino/evil; cat .cuggino/wip/*.md > seen; true"
[[implementing.steps]]
say = "<DONE>Done.</DONE>"

[[reviewing]]
[[reviewing.steps]]
run = "ls one.py && touch evil; rm one.py"
[[reviewing.steps]]
say = "<APPROVED>Good.</APPROVED>"
"""

_DELIVERY = """
[[initializer]]
[[initializer.steps]]
tool = "create_deliverable"
[initializer.steps.input]
deliverables = [{ id = "DL-1", description = "a page", acceptanceCriteria = ["it is there"] }]
[[coding]]
[[coding.steps]]
run = "touch page; echo broken > .autonoe/status.json; true"
[[coding.steps]]
tool = "set_deliverable_status"
input = { deliverableId = "DL-1", status = "passed" }
"""


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


def test_each_role_of_a_run_has_its_view(project: GitProject, tmp_path: Path) -> None:
    """The plan arrives, the implementer's work stays, and nothing that a role may not write."""
    config = {"guard": "off", "sandbox": "require", "commit": True}
    (project.root / ".cuggino.json").write_text(json.dumps(config))
    agent = scenario(tmp_path, _RUN)
    before = (project.root / ".git/config").read_text()
    assert 0 == main(["run", "--agent", agent, "--focus", "a page"])
    assert (project.root / "one.py").exists()
    assert "1. one" in (project.root / "seen").read_text()
    assert [] == [path for path in project.root.rglob("evil*") if ".git/" not in str(path)]
    assert before == (project.root / ".git/config").read_text()


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


def test_required_without_an_engine(
    project: GitProject,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
) -> None:
    """`--sandbox require` does not start where nothing confines a role."""
    from cuggino.sandbox import Boundary, boundary as found

    none = Boundary(reason="bubblewrap is not installed")
    monkeypatch.setattr(found, "_probed", lambda *_: none)
    (project.root / ".cuggino.json").write_text('{"guard": "off"}')
    agent = scenario(tmp_path, _RUN)
    assert "bubblewrap is not installed" in cli.err(
        "run", "--sandbox", "require", "--agent", agent, "--focus", "a page"
    )
    assert not (project.root / "one.py").exists()


_HONEST = re.sub(r"^run = .*", 'run = "touch work"', _RUN, flags=re.MULTILINE)


def configure(project: GitProject, **config: object) -> None:
    (project.root / ".cuggino.json").write_text(json.dumps({"guard": "off", **config}))


def test_a_check_has_the_implementers_view(project: GitProject, tmp_path: Path) -> None:
    """Tests that an agent has written cannot change the specifications when they run."""
    outside = tmp_path / "outside"
    configure(project, checkCommand=f"echo evil > .specs/page.md; touch checked {outside}")
    assert 0 == main(["run", "--agent", scenario(tmp_path, _HONEST), "--focus", "a page"])
    assert "# Page\n\nA page.\n" == (project.root / ".specs/page.md").read_text()
    assert (project.root / "checked").exists()
    assert not outside.exists()


def test_without_a_sandbox_commands_have_no_view(project: GitProject, tmp_path: Path) -> None:
    """`--no-sandbox` is for the commands of a run, too."""
    check, hook = tmp_path / "check", tmp_path / "hook"
    configure(project, checkCommand=f"touch {check}", commit=True)
    install(project, f"touch {hook}")
    agent = scenario(tmp_path, _HONEST)
    assert 0 == main(["run", "--no-sandbox", "--agent", agent, "--focus", "a page"])
    assert check.exists()
    assert hook.exists()


def install(project: GitProject, command: str) -> None:
    """Install a commit hook as husky does: git runs the file in the work tree."""
    hook = project.root / ".husky/pre-commit"
    hook.parent.mkdir()
    hook.write_text(f"#!/bin/sh\n{command}\ntrue\n")
    hook.chmod(0o755)
    project.git("config", "core.hooksPath", ".husky")


def test_hooks_have_the_implementers_view(project: GitProject, tmp_path: Path) -> None:
    """A hook that an agent has written cannot change the specifications at the commit."""
    outside = tmp_path / "outside"
    configure(project, commit=True)
    install(project, f"echo evil > .specs/page.md; touch hooked {outside}")
    assert 0 == main(["run", "--agent", scenario(tmp_path, _HONEST), "--focus", "a page"])
    assert "# Page\n\nA page.\n" == (project.root / ".specs/page.md").read_text()
    assert (project.root / "hooked").exists()
    assert not outside.exists()
    assert "work" in project.git("log", "--format=", "--name-only").split()


@pytest.mark.real_agent
def test_the_first_setup_is_the_users_own(project: GitProject, tmp_path: Path) -> None:
    """The first one may configure git, as husky does; later ones run what agents have written.

    A changed command is a new one.
    """
    agent = scenario(tmp_path, _HONEST)
    writes = "git config --local a.b 1 && touch .git/hooks/pre-push"

    def run(setup: str) -> None:
        configure(project, setupCommand=setup)
        assert 0 == main(["run", "--agent", agent, "--focus", "a page"])

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
    agent = scenario(tmp_path, changes)
    main(["run", "--agent", agent, "--focus", "a page"])
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
    agent = scenario(tmp_path, _HONEST)
    # A hook that adds specifications each time: the work is never committed.
    assert 1 == main(["run", "--no-sandbox", "--json", "--agent", agent, "--focus", "a page"])
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
    agent = scenario(tmp_path, _HONEST)
    assert 0 == main(["run", "--json", "--agent", agent, "--focus", "a page"])
    put_back = told(cli, "RoleViolated")
    assert ("check", [".mcp.json"]) in put_back
    assert ("commit", [".gemini/x"]) in put_back
    assert not (project.root / ".mcp.json").exists()
    assert not (project.root / ".gemini/x").exists()


_LOOP = """
[[plan]]
[[plan.steps]]
say = "Nothing to plan."
[[build]]
[[build.steps]]
run = "touch lopen.loop.done"
"""


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
    agent = scenario(tmp_path, _LOOP)
    assert 0 == main(["loop", "--allow-main", "--json", "--agent", agent])
    assert (project.root / "seen").exists()
    assert not outside.exists()
    assert [("verify", [".mcp.json"])] == told(cli, "RoleViolated")
