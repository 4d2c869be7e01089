"""`cuggino backlog`, `issues` and `slots` on real folders."""

from __future__ import annotations

import io
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cuggino import Runtime, events as ev, run
from cuggino.config import Config, save_config
from cuggino.errors import WorkspaceLocked
from cuggino.stages.slots import kept_ref
from cuggino.storage import Backlog, Workspace
from cuggino.storage.journal import Journal
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.git_project import isolate_git
from tests.stages.slots.conftest import SlottedProject

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
    project: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, args: list[str], words: str
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


def test_list_of_issues(workspace: Workspace, cli: Cli) -> None:
    """Each issue has a number, kind, name and title, with control characters escaped."""
    assert 0 == main(["issues", "list"])
    issue, finding, third = names(workspace)
    assert [
        f"1  spec-issue  {issue}  Two ways",
        f"2  tbd         {finding}  ␛[2JNo test",
        f"3  tbd         {third}  third",
    ] == cli.printed().out.splitlines()


@pytest.mark.usefixtures("project")
def test_no_issues(cli: Cli) -> None:
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


@pytest.fixture
def slotted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SlottedProject:
    """A project with a used slot, one with uncommitted work, and kept work."""
    isolate_git(monkeypatch, tmp_path / "home")
    slotted = SlottedProject(tmp_path / "shop")
    slotted.prepare(slotted.slot(1), "a.md")
    (slotted.slot(1).folder / "new.py").write_text("new\n")
    slotted.prepare(slotted.slot(1), "b.md")
    slotted.prepare(slotted.slot(2), "c\n\x1b[31m.md")
    (slotted.slot(2).folder / "new.py").write_text("new\n")
    monkeypatch.chdir(slotted.root)
    return slotted


def test_list_of_slots(slotted: SlottedProject, cli: Cli) -> None:
    """Each slot and each ref is a line, without control characters."""
    told = cli("slots", "list")
    home, first, second, ref = told.splitlines()
    assert home.startswith(f"{slotted.root}.cuggino-slots (")
    assert first.startswith("  slot-1  b.md  ")
    assert first.endswith("all work is safe")
    assert second.endswith("uncommitted changes")
    assert ref.startswith(kept_ref("a.md", 1))
    assert "\x1b" not in told


def test_slots_as_json(slotted: SlottedProject, cli: Cli) -> None:
    """The same as JSON, and what was removed."""
    listing = json.loads(cli("slots", "list", "--json"))
    assert [folder["slot"] for folder in listing["folders"]] == [1, 2]
    assert [folder["unlanded"] for folder in listing["folders"]] == [None, "uncommitted changes"]
    assert [ref["item"] for ref in listing["refs"]] == ["a.md"]
    planned = json.loads(cli("slots", "clean", "--dry-run", "--json"))
    assert (planned["removed"], [one["slot"] for one in planned["folders"]]) == (False, [1])
    done = json.loads(cli("slots", "clean", "--json"))
    assert done == {**planned, "removed": True}


def test_clean_slots(slotted: SlottedProject, cli: Cli) -> None:
    """Removed and kept folders are named; nothing is left to remove then."""
    assert main(["slots", "clean", "--dry-run"]) == 0
    assert slotted.slot(1).root.exists()
    assert "Would remove slot-1  b.md" in cli.printed().out
    removed, kept, ref = cli("slots", "clean").splitlines()
    assert removed.startswith("Removed slot-1  b.md")
    assert kept.startswith("Kept slot-2")
    assert ref.startswith(f"Kept {kept_ref('a.md', 1)}")
    assert not slotted.slot(1).root.exists()
    assert slotted.slot(2).root.exists()
    assert cli("slots", "clean").startswith("There is nothing to remove.")


def test_no_slots(here: Path, cli: Cli) -> None:
    """Without slots the list reports none."""
    assert cli("slots", "list") == "There are no slots.\n"


def test_while_a_run_works(slotted: SlottedProject, cli: Cli) -> None:
    """A run that holds the project is shown, and nothing is removed meanwhile."""
    workspace = Workspace(slotted.root)
    with workspace.lock(command="cuggino watch"):
        assert "in use by a run" in cli("slots", "list")
        assert "in use by process" in cli.err("slots", "clean")
    assert slotted.slot(1).root.exists()


def test_from_the_library(slotted: SlottedProject) -> None:
    """`Runtime.slots` and `Runtime.clean_slots` follow the configuration."""
    runtime = Runtime.live(cwd=slotted.root, agent="claude")
    listing = run(runtime.slots())
    assert listing is not None
    assert [folder.number for folder in listing.folders] == [1, 2]
    with Workspace(slotted.root).lock(command="test"), pytest.raises(WorkspaceLocked):
        run(runtime.clean_slots())
    cleaned = run(runtime.clean_slots(dry_run=True))
    assert cleaned is not None
    assert [folder.number for folder in cleaned.folders] == [1]
    save_config(slotted.root, Config(slot_folder="../elsewhere"))
    elsewhere = run(Runtime.live(cwd=slotted.root, agent="claude").slots())
    assert elsewhere is not None
    assert elsewhere.folders == ()
