"""`cuggino backlog` on a real folder."""

from __future__ import annotations

import io
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cuggino import events as ev
from cuggino.storage import Backlog, Workspace
from cuggino.storage.journal import Journal
from cuggino_cli.main import main
from tests.cli.cli import Cli

ID = "0193b2c1-0000-7000-8000-000000000000"


@pytest.fixture
def backlog(project: Path) -> Backlog:
    """Return the backlog of the working directory."""
    workspace = Workspace(project)
    workspace.open()
    for name in ("001-login.md", "002-search.md", "010-logout.md"):
        (workspace.backlog / name).write_text(f"# {name}\n")
    return Backlog(workspace)


def test_add(project: Path, cli: Cli) -> None:
    """Items are added in order, with text from an option, a file or none."""
    (project / "more.md").write_text("from a file\n")
    assert 0 == main(["backlog", "add", "Login page"])
    assert 0 == main(["backlog", "add", "Search", "--text", "of books"])
    assert 0 == main(["backlog", "add", "Help", "--file", "more.md"])
    added = ["001-login-page.md", "002-search.md", "003-help.md"]
    assert [f"Added {name}" for name in added] == cli.printed().out.splitlines()
    backlog = Backlog(Workspace(project))
    assert added == backlog.items()
    texts = ["# Login page\n", "# Search\n\nof books\n", "# Help\n\nfrom a file\n"]
    assert texts == [backlog.path(name).read_text() for name in added]


@pytest.mark.parametrize("args", [["-"], ["--file", "-"]])
def test_add_from_standard_input(
    project: Path, monkeypatch: pytest.MonkeyPatch, args: list[str]
) -> None:
    """The text may come from a pipe and contain any bytes."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"caf\xc3\xa9 \xff\n")))
    assert 0 == main(["backlog", "add", "Piped", *args])
    text = (project / ".cuggino/backlog/001-piped.md").read_text(encoding="utf-8")
    assert "# Piped\n\ncafé \N{REPLACEMENT CHARACTER}\n" == text


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([" "], "The title is empty"),
        ([], "Missing argument 'TITLE'"),
        (["two", "words"], "Unexpected argument 'words': quote the title."),
        (["a", "-", "--text", "b"], "exclude each other"),
        (["a", "--file", "gone.md"], "--file: "),
        (["a", "--file", "blank.md"], "is empty"),
        (["a", "-"], "standard input is empty"),
    ],
)
def test_add_refuses(
    project: Path,
    cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
    args: list[str],
    words: str,
) -> None:
    """A usage error is reported, exits with 2 and adds nothing."""
    (project / "blank.md").write_text("\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b" \n")))
    assert words in cli.err("backlog", "add", *args)
    assert not (project / ".cuggino").exists()


def test_list(project: Path, backlog: Backlog, cli: Cli) -> None:
    """Items come first, then parked ones and problems, with control characters escaped."""
    (project / ".cuggino/backlog/empty.md").write_text("")
    (project / ".cuggino/backlog/\x1b[2J\n.md").write_text("x")
    backlog.park("002-search.md", "the agent failed\nwith \x1b]0;x\x07")
    assert [
        "item     ␛[2J␤.md",
        "item     001-login.md",
        "item     010-logout.md",
        "parked   002-search.md: the agent failed",
        "         with ␛]0;x␇",
        "problem  empty.md: empty",
    ] == cli("backlog", "list").splitlines()


def test_list_dependencies(project: Path, backlog: Backlog, cli: Cli) -> None:
    """An item is listed with those that it waits for, or with the reason why it cannot begin."""
    folder = project / ".cuggino/backlog"
    for name, after in (("010-logout.md", "[001-login, 002-search]"), ("x.md", "1\x1bc")):
        (folder / name).write_text(f"---\nafter: {after}\n---\n# Title\n")
    assert [
        "item     001-login.md",
        "item     002-search.md",
        "item     010-logout.md: after 001-login.md, 002-search.md",
        "held     x.md: comes after 1␛c, which is not in the backlog",
    ] == cli("backlog", "list").splitlines()
    backlog.park("002-search.md", "failed")
    assert "held     010-logout.md: comes after 002-search.md, which is parked" in (
        cli("backlog", "list").splitlines()
    )


def test_list_times(backlog: Backlog, cli: Cli) -> None:
    """An item whose time has not come is held until then."""
    backlog.path("001-login.md").write_text("---\nafter: 2999-12-01 08:00 Europe/Rome\n---\n# A\n")
    backlog.path("002-search.md").write_text("---\nafter: 2001-12-01\n---\n# B\n")
    assert [
        "held     001-login.md: until 2999-12-01 08:00 Europe/Rome",
        "item     002-search.md",
        "item     010-logout.md",
    ] == cli("backlog", "list").splitlines()


def test_list_at_work(project: Path, backlog: Backlog, cli: Cli) -> None:
    """Items of a working watch have their slot and stage, or their place in the queue."""
    workspace = Workspace(project)
    backlog.add("Fourth", "")
    events = [
        *(
            ev.WatchProcessingItem(filename=name, slot=slot)
            for slot, name in enumerate(backlog.items(), 1)
        ),
        ev.WatchPlaced(filename="001-login.md", slot=1, worker="w\x1b[2J1"),
        ev.PlanningStart(iteration=1, item="001-login.md"),
        ev.WatchCandidate(filename="002-search.md", slot=2, commit="c", base="b", attempt=1),
        ev.WatchSentBack(filename="010-logout.md", reason="conflict", returns=2),
        ev.WatchCandidate(filename="011-fourth.md", slot=4, commit="c", base="b", attempt=1),
        ev.WatchLanding(filename="011-fourth.md", commit="c", trunk="b"),
        ev.WatchItemHeld(filename="012-fifth.md", reason="has an open spec issue"),
    ]
    backlog.add("Fifth", "")
    with workspace.lock(command="cuggino watch"):
        now = datetime.now(UTC)
        started = ev.RunStarted(run_id=ID, kind="watch", command="c", options={"slots": 4})
        journal = Journal.create(workspace.journal, started, at=now)
        for event in events:
            journal.append(event, at=now)
        assert 0 == main(["backlog", "list"])
        journal.close()
    assert cli.printed().out.splitlines() == [
        "at work  001-login.md: slot 1, planning, on w␛[2J1",
        "to land  002-search.md",
        "item     010-logout.md: sent back twice: conflict with what has landed",
        "landing  011-fourth.md",
        "held     012-fifth.md: has an open spec issue",
    ]


def test_list_nothing(project: Path, cli: Cli) -> None:
    """An empty backlog is reported as empty, and no folder is created."""
    assert "The backlog is empty.\n" == cli("backlog", "list")
    assert [project / ".specs"] == list(project.iterdir())


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("001-login.md", "001-login.md"),
        (".cuggino/backlog/001-login.md", "001-login.md"),
        ("1", "001-login.md"),
        ("001", "001-login.md"),
        ("10", "010-logout.md"),
        ("002-s", "002-search.md"),
        ("x", "x.md"),
    ],
)
def test_names(project: Path, backlog: Backlog, cli: Cli, name: str, meant: str) -> None:
    """An item, parked or not, is addressed by file, number or prefix."""
    (project / ".cuggino/backlog/x.md").write_text("# x.md\n")
    for _ in range(2):
        assert f"# {meant}\n" == cli("backlog", "show", name)
        backlog.park(meant, "why")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["show", "0"], "'0' may be any of 001-login.md, 002-search.md, 010-logout.md."),
        (["show", "3"], "There is no item '3'."),
        (["show", ""], "There is no item ''."),
        (["rm", "gone"], "There is no item 'gone'."),
        (["retry", "1"], "There is no parked item '1'."),
        (["show", "\x1b[2J"], "There is no item '␛[2J'."),
    ],
)
@pytest.mark.usefixtures("backlog")
def test_rejected_names(cli: Cli, args: list[str], words: str) -> None:
    """An unknown or ambiguous name is reported, with exit code 2."""
    assert f"Error: {words}" in cli.err("backlog", *args)


def test_show_is_inert(backlog: Backlog, cli: Cli) -> None:
    """Control characters in an item are escaped, and its text ends with a newline."""
    backlog.path("001-login.md").write_text("\x1b[2Jtext without an end")
    assert "␛[2Jtext without an end\n" == cli("backlog", "show", "1")


def test_retry(backlog: Backlog, cli: Cli) -> None:
    """A parked item is shown with its reason and put back by its number."""
    backlog.park("002-search.md", "failed three times")
    shown = cli.both("backlog", "show", "2")
    assert "# 002-search.md\n" == shown.out
    assert "parked   002-search.md: failed three times\n" == shown.err
    assert "Back in the backlog: 002-search.md\n" == cli("backlog", "retry", "2")
    assert "002-search.md" in backlog.items()
    assert {} == backlog.parked()


def test_rm(project: Path, backlog: Backlog, cli: Cli) -> None:
    """Items, parked items and empty files move to the archive when removed; folders never do."""
    (project / ".cuggino/backlog/empty.md").write_text("")
    (project / ".cuggino/backlog/folder").mkdir()
    backlog.park("002-search.md", "why")
    for name in ("1", "2", "empty"):
        assert 0 == main(["backlog", "rm", name])
    assert 2 == main(["backlog", "rm", "folder"])
    archived = sorted((project / ".cuggino/archive").iterdir())
    told = [f"Moved to .cuggino/archive/{path.name}" for path in archived]
    assert told == cli.printed().out.splitlines()
    assert ["# 001-login.md\n", "# 002-search.md\n", ""] == [p.read_text() for p in archived]
    assert ["010-logout.md"] == backlog.items()


def configure(project: Path, *lines: str, **source: str) -> None:
    """Configure a source that prints these lines."""
    (project / "tickets").write_text("".join(f"{line}\n" for line in lines))
    settings = {"backlogSources": [{"type": "command", "command": "cat tickets", **source}]}
    (project / ".cuggino.json").write_text(json.dumps(settings))


def test_import(project: Path, cli: Cli) -> None:
    """Changes are printed; a held item and the page of an item are in the list."""
    held = '{"id": 8, "title": "B", "held": "was edited by eve"}'
    configure(project, '{"id": 7, "title": "A", "url": "https://e.example/7"}', held, name="jira")
    assert [
        "new      jira-00007.md: https://e.example/7",
        "held     jira-00008.md: was edited by eve",
    ] == cli("backlog", "import").splitlines()
    assert "Nothing has changed.\n" == cli("backlog", "import")
    assert [
        "item     jira-00007.md: https://e.example/7",
        "held     jira-00008.md: was edited by eve",
    ] == cli("backlog", "list").splitlines()
    configure(project, held, name="jira")
    out = cli("backlog", "import")
    assert "removed  jira-00007.md: it is closed, or no longer listed, https://e.example/7\n" == out


def test_import_of_nonsense(project: Path, cli: Cli) -> None:
    """The rest is imported, and the exit code is 1."""
    configure(project, '{"id": 7, "title": "A"}', "\x1b[31mUsage:")
    out, err = cli.both("backlog", "import", code=1)
    assert "new      command-00007.md\n" == out
    assert err.startswith("cuggino: source command: line 2: column 1: not valid JSON")


def test_import_without_a_source(project: Path, cli: Cli) -> None:
    """It fails, as no source is configured."""
    assert "no source is configured" in cli.err("backlog", "import")
