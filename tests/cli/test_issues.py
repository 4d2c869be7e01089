"""`cuggino issues` on a real folder."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from cuggino.storage import Workspace
from cuggino_cli.main import main
from tests.cli.cli import Cli


@pytest.fixture
def workspace(project: Path) -> Workspace:
    """Return a workspace with a spec issue and two findings."""
    made = Workspace(project)
    made.write_spec_issue("# Two ways\n\nto log in")
    made.write_tbd_item("\x1b[2JNo test\n")
    made.write_tbd_item("third")
    return made


def names(workspace: Workspace) -> list[str]:
    """Return the names of the issues, in order."""
    return [issue.name for issue in workspace.issues()]


def test_list(workspace: Workspace, cli: Cli) -> None:
    """Each issue has a number, kind, name and title, with control characters escaped."""
    assert 0 == main(["issues", "list"])
    issue, finding, third = names(workspace)
    assert [
        f"1  spec-issue  {issue}  Two ways",
        f"2  tbd         {finding}  ␛[2JNo test",
        f"3  tbd         {third}  third",
    ] == cli.printed().out.splitlines()


@pytest.mark.usefixtures("project")
def test_list_nothing(cli: Cli) -> None:
    """Without issues the list is empty."""
    assert "There are no open issues.\n" == cli("issues", "list")


def test_show(workspace: Workspace, cli: Cli) -> None:
    """An issue is shown by number, name or prefix."""
    issue, finding, _ = names(workspace)
    for name in ("1", issue, issue[:-3], f".cuggino/spec-issues/{issue}"):
        assert "# Two ways\n\nto log in\n" == cli("issues", "show", name)
    assert "␛[2JNo test\n" == cli("issues", "show", finding)


def test_resolve(workspace: Workspace, cli: Cli) -> None:
    """A resolved issue moves to the archive."""
    issue, *others = names(workspace)
    assert 0 == main(["issues", "resolve", "1"])
    (archived,) = workspace.archive.iterdir()
    assert archived.name.endswith(f"-resolved-{issue}")
    expected = f"Resolved: Two ways\nMoved to .cuggino/archive/{archived.name}\n"
    assert expected == cli.printed().out
    assert others == names(workspace)
    assert "" == workspace.read_memory()


def test_answer(workspace: Workspace, project: Path, cli: Cli) -> None:
    """Question and answer go into the specifications, and the issue is settled."""
    issue, *others = names(workspace)
    assert 0 == main(["issues", "answer", "1", "Both, by mail first"])
    (archived,) = workspace.archive.iterdir()
    assert archived.name.endswith(f"-resolved-{issue}")
    assert "The answer is in .specs/decisions.md\n" in cli.printed().out
    written = (project / ".specs" / "decisions.md").read_text()
    assert written.startswith("# Decisions\n")
    assert written.endswith(": Two ways\n\n> # Two ways\n>\n> to log in\n\nBoth, by mail first\n")
    assert others == names(workspace)


def test_dismiss(workspace: Workspace, cli: Cli) -> None:
    """A dismissed finding is removed, and the memory records the reason with today's date."""
    before = datetime.now().astimezone()
    assert 0 == main(["issues", "dismiss", "3", "--reason", "tested by hand"])
    after = datetime.now().astimezone()
    assert "Dismissed: third\n" in cli.printed().out
    assert 2 == len(names(workspace))
    memory = workspace.read_memory()
    assert any(f"## {day:%Y-%m-%d}: third\n" in memory for day in (before, after))
    assert "Dismissed: tested by hand\n\n> third\n" in memory


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["show", "4"], "There is no issue '4'."),
        (["resolve", "x"], "There is no issue 'x'."),
        (["resolve", "0"], "'0' may be any of "),
        (["answer", "1"], "Missing argument 'TEXT'."),
        (["answer", "1", " "], "The answer is empty."),
        (["dismiss", "1"], "Missing option '--reason'."),
        (["dismiss", "1", "--reason", " "], "The reason is empty."),
    ],
)
def test_usage_errors(workspace: Workspace, cli: Cli, args: list[str], words: str) -> None:
    """A usage error is reported, exits with 2 and changes nothing."""
    assert f"Error: {words}" in cli.err("issues", *args)
    assert 3 == len(names(workspace))
