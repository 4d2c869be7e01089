"""The board, and the names that lead to runs and questions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cuggino import events as ev
from cuggino.runs import RunState
from cuggino.storage import Backlog, Origins, Workspace, digest_of, new_run_id
from cuggino.storage.journal import Journal
from cuggino.web.board import Board, BoardReader, _note_of
from cuggino.web.names import id_named, question_name, run_name
from tests.git_project import GitProject
from tests.report.nights import name_at
from tests.vectors import each
from tests.web.journals import AT, Writer
from tests.web.server import Page, page

NOW = datetime.now(UTC)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A workspace with its folders."""
    made = Workspace(tmp_path)
    made.open()
    return made


def read(workspace: Workspace) -> Board:
    return BoardReader(workspace).read(now=datetime.now(UTC))


def record(
    workspace: Workspace,
    *events: ev.Event,
    item: str | None = None,
    kind: str = "run",
    focus: str = "",
    ago: float = 60,
    cost: float | None = None,
) -> str:
    """Write the journal of a run, and return its id."""
    started = ev.RunStarted.model_validate(
        {"run_id": new_run_id(), "kind": kind, "command": "c", "item": item, "focus": focus}
    )
    at = datetime.now(UTC) - timedelta(seconds=ago)
    journal = Journal.create(workspace.journal, started, at=at, sync=False)
    if cost is not None:
        journal.append(ev.StageStarted(name="planning"), at=at, stage="planning#1")
        spent = ev.SessionEnded(outcome="completed", cost_usd=cost)
        journal.append(spent, at=at, stage="planning#1")
    for event in events:
        journal.append(event, at=at + timedelta(seconds=30))
    journal.close()
    return started.run_id


def item_of(workspace: Workspace, name: str, folder: str = "backlog") -> str:
    """Return the item of a run, as journals name it."""
    return f"{name} {digest_of(workspace.folder / folder / name)}"


@pytest.fixture
def at_work(workspace: Workspace) -> Iterator[None]:
    """This process holds the workspace, as a watch would."""
    with workspace.lock(command="cuggino watch", since=datetime.now(UTC) - timedelta(hours=1)):
        yield


def test_empty(workspace: Workspace) -> None:
    """Without items and runs, nothing is shown, and nothing cost anything."""
    assert Board(specs=".specs") == read(workspace)


def test_gone(tmp_path: Path) -> None:
    """A project that was deleted is gone, and no error."""
    assert read(Workspace(tmp_path / "none")).gone


def test_columns(workspace: Workspace) -> None:
    """Items are in the columns of their states, with their headings, in order."""
    backlog = Backlog(workspace)
    for title in ("First", "Second", "Third", "Fourth"):
        backlog.add(title)
    backlog.park("002-second.md", "it crashed")
    item = item_of(workspace, "003-third.md")
    run = record(workspace, ev.RunEnded(state="approved"), item=item, cost=0.25)
    assert backlog.archive("003-third.md", "approved", item.split()[1])
    board = read(workspace)
    assert ["First", "Fourth"] == [card.title for card in board.of("backlog")]
    (parked,) = board.of("parked")
    assert ("002-second.md", "Second", "it crashed") == (parked.name, parked.title, parked.note)
    (done,) = board.of("done")
    assert ("Third", run, 0.25, 30) == (done.title, done.run_id, done.cost_usd, done.seconds)
    assert 1 == board.done == board.done_lately
    assert [("parked", "Second")] == [(one.kind, one.title) for one in board.waiting]


@pytest.mark.usefixtures("at_work")
def test_working(workspace: Workspace) -> None:
    """The item of the running run is at work; its card names the run and its cost."""
    backlog = Backlog(workspace)
    backlog.add("First")
    backlog.add("Second")
    record(workspace, ev.WatchProcessingItem(filename="001-first.md"), kind="watch")
    run = record(
        workspace,
        ev.IterationStart(iteration=1, max_iterations=3),
        ev.PlanningStart(iteration=1),
        ev.CommitPerformed(iteration=1, commit_hash="abc", message="m"),
        item=item_of(workspace, "001-first.md"),
        focus="The file `.cuggino/backlog/001-first.md`, with this content:\n\n"
        "---\nneeds: gpu\n---\n\n# First",
    )
    board = read(workspace)
    assert "cuggino watch" == board.command
    (working,) = board.working
    assert (run, "First", 1) == (working.run_id, working.title, working.commits)
    assert ("working", "planning", 1) == (
        *(working.activity.state, working.activity.role, working.activity.iteration),
    )
    (card,) = board.of("working")
    assert ("001-first.md", run, False) == (card.name, card.run_id, card.may_move)
    (other,) = board.of("backlog")
    assert ("002-second.md", True) == (other.name, other.may_move)


@pytest.mark.usefixtures("at_work")
def test_a_journal_grows(workspace: Workspace) -> None:
    """Appended entries are read; a run that has ended is not at work any more."""
    record(workspace, ev.PlanningStart(iteration=1), focus="Do it")
    reader = BoardReader(workspace)
    assert ["planning"] == [one.activity.role for one in reader.read(now=NOW).working]
    (path,) = workspace.journal.iterdir()
    journal = Journal.open(path)
    journal.append(ev.RunPaused(), at=datetime.now(UTC))
    journal.close()
    paused = reader.read(now=NOW)
    assert ["paused"] == [one.activity.state for one in paused.working]
    assert [("paused", "Do it")] == [(one.kind, one.title) for one in paused.waiting]
    journal = Journal.open(path)
    journal.append(ev.RunEnded(state="approved"), at=datetime.now(UTC))
    journal.close()
    ended = reader.read(now=NOW)
    assert () == ended.working
    assert ["approved"] == [run.state for run in ended.runs]


def test_a_killed_run(workspace: Workspace) -> None:
    """Without a process nothing is at work; the item keeps its place until it is resumed."""
    Backlog(workspace).add("First")
    record(workspace, ev.PlanningStart(iteration=1), item=item_of(workspace, "001-first.md"))
    board = read(workspace)
    assert () == board.working
    (card,) = board.of("backlog")
    assert ("unfinished", False) == (card.note, card.may_move)


def test_questions(workspace: Workspace) -> None:
    """A spec issue names its item, which waits in its own column; findings follow."""
    Backlog(workspace).add("Invoices")
    issue = workspace.write_spec_issue("# Which?\n\nPDF or HTML")
    workspace.write_tbd_item("# No test")
    asked = ev.LoopSpecIssue(iteration=1, content="", filename=issue)
    item = item_of(workspace, "001-invoices.md")
    record(workspace, asked, ev.RunEnded(state="spec_issue"), item=item)
    board = read(workspace)
    assert ["Invoices"] == [card.title for card in board.of("asking")]
    assert [("spec-issue", "Which?", "Invoices"), ("finding", "No test", "")] == [
        (one.kind, one.title, one.item) for one in board.waiting
    ]
    assert board.waiting[0].text.endswith("PDF or HTML")


def test_cost(workspace: Workspace) -> None:
    """A watch and the runs of its items are counted once; old runs are not counted."""
    record(workspace, ev.RunEnded(state="ended"), kind="watch", cost=0.5, ago=100)
    record(workspace, ev.RunEnded(state="approved"), item="a.md 1", cost=0.3, ago=90)
    record(workspace, ev.RunEnded(state="approved"), focus="Alone", cost=1.0, ago=50)
    record(workspace, ev.RunEnded(state="approved"), focus="Old", cost=9.0, ago=2 * 86_400)
    board = read(workspace)
    assert board.cost_lately.cost_usd == pytest.approx(1.5)
    assert not board.cost_lately.cost_estimated
    assert ["Alone", "a"] == [run.title for run in board.runs]


def test_an_estimated_cost(workspace: Workspace) -> None:
    """A run with an estimate marks its line, its card and the sums."""
    estimate = ev.SessionEnded(outcome="completed", cost_usd=0.25, cost_estimated=True)
    record(workspace, ev.RunEnded(state="approved"), focus="Exact", cost=1.0, ago=50)
    record(workspace, estimate, ev.RunEnded(state="approved"), focus="Estimate", ago=90)
    board = read(workspace)
    assert board.cost_lately.cost_usd == pytest.approx(1.25)
    assert board.cost_lately.cost_estimated
    assert {"Exact": False, "Estimate": True} == {
        run.title: run.cost_estimated for run in board.runs
    }


def test_broken_journal(workspace: Workspace) -> None:
    """A journal that cannot be read hides nothing else."""
    workspace.journal.mkdir()
    (workspace.journal / f"{new_run_id()}.jsonl").write_text("garbage\n")
    run = record(workspace, ev.RunEnded(state="approved"), focus="Fine")
    board = read(workspace)
    assert [run] == [one.run_id for one in board.runs]


def test_refs_of_slots(workspace: Workspace) -> None:
    """Kept work is listed, and an item with a candidate is marked while no watch works."""
    for title in ("First", "Second"):
        Backlog(workspace).add(title)
    reader = BoardReader(workspace)
    assert () == reader.read(now=NOW).kept
    git = GitProject(workspace.root)
    git.write("a.txt", "a")
    git.git("add", "a.txt")
    git.git("commit", "-q", "-m", "Begin")
    git.git("update-ref", "refs/cuggino/candidates/001-first%2Emd", "HEAD")
    git.git("update-ref", "refs/cuggino/kept/001-first%2Emd/1", "HEAD")
    board = reader.read(now=NOW)
    assert ["has a candidate", ""] == [card.note for card in board.of("backlog")]
    assert [("refs/cuggino/kept/001-first%2Emd/1", "001-first.md")] == [
        (one.ref, one.item) for one in board.kept
    ]
    git.git("pack-refs", "--all")
    assert board.kept == reader.read(now=NOW).kept
    git.git("update-ref", "-d", "refs/cuggino/kept/001-first%2Emd/1")
    assert () == reader.read(now=NOW).kept


def test_items_after_others(workspace: Workspace) -> None:
    """An item names the one that it comes after; its front matter is not its title."""
    backlog = Backlog(workspace)
    backlog.add("First")
    for name, after in (("2.md", "001-first.md"), ("3.md", "nothing.md")):
        text = f"---\nafter: {after}\n---\n\n# Item {name}\n"
        (workspace.backlog / name).write_text(text, encoding="utf-8")
    assert [
        ("First", ""),
        ("Item 2.md", "after First"),
        ("Item 3.md", "comes after nothing.md, which is not in the backlog"),
    ] == [(card.title, card.note) for card in read(workspace).of("backlog")]


def test_pages_of_issues(workspace: Workspace) -> None:
    """An imported item has the page of its issue, wherever it is by now."""
    origins, backlog = Origins(workspace), Backlog(workspace)
    for number in (1, 2, 3):
        name = f"github-{number:05}.md"
        (workspace.backlog / name).write_text(f"# Item {number}\n")
        origins.change(
            name, source="github", id=str(number), url=f"https://github.com/o/r/{number}"
        )
    (workspace.backlog / "mine.md").write_text("# Mine\n")
    backlog.park("github-00002.md", "no")
    backlog.archive("github-00003.md", "approved", backlog.digest("github-00003.md") or "")
    pages = {card.title: card.issue_url for card in read(workspace).cards}
    site = "https://github.com/o/r"
    assert {
        "Item 1": f"{site}/1",
        "Item 2": f"{site}/2",
        "Item 3": f"{site}/3",
        "Mine": "",
    } == pages


def test_last_run(workspace: Workspace) -> None:
    """Where nothing runs, the board has the run that ended last; of a watch, the watch itself."""
    assert read(workspace).last is None
    ended = ev.RunEnded(state="budget", message="all is spent")
    run = record(workspace, ended, focus="# Login", ago=600)
    last = read(workspace).last
    assert last is not None
    assert ("Login", "budget", "all is spent") == (last.title, last.state, last.message)
    assert last.command.startswith("cuggino run --resume ")
    assert run == last.run_id
    Backlog(workspace).add("First")
    watch = record(workspace, ev.RunEnded(state="quota"), kind="watch", ago=50)
    record(workspace, ev.RunEnded(state="approved"), item=item_of(workspace, "001-first.md"))
    last = read(workspace).last
    assert last is not None
    assert (watch, "cuggino watch") == (last.run_id, last.command)


@pytest.mark.usefixtures("at_work")
def test_last_run_beside_one_at_work(workspace: Workspace) -> None:
    """While something runs, earlier ends are no news."""
    record(workspace, ev.RunEnded(state="approved"), ago=600)
    record(workspace, ev.PlanningStart(iteration=1), focus="# Login")
    assert read(workspace).last is None


@pytest.mark.parametrize(
    ("reason", "note"),
    [("changed-files", "sent back once: check changes tracked files"), ("", "sent back once")],
)
def test_note_of_what_was_sent_back(reason: str, note: str) -> None:
    """A reason that is unknown, as after a restart of the watch, leaves no colon behind."""
    assert note == _note_of(RunState(place="sent-back", returns=1, return_reason=reason))


RUN = "0193b2c1-8a05-7d3e-9c51-1f0aa723a216"
OTHER = "0193b2c1-8a05-7d3e-9c51-1f0aa723a217"
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@each(
    "title, name",
    [
        ("The `login` page", "-the-login-page-a723a216"),
        ("", "-a723a216"),
        ("注文", "-a723a216"),
        ("x" * 90, f"-{'x' * 40}-a723a216"),
    ],
)
def test_name_of_a_run(title: str, name: str) -> None:
    """A run is named by its day, its title and the end of its id."""
    found = run_name(RUN, title)
    assert re.fullmatch(r"2024-12-1[01]" + re.escape(name), found)
    assert RUN == id_named(found, [OTHER, RUN])


def test_names_without_a_time() -> None:
    """What is no id of ours is its own name; an unknown name stays as it is."""
    assert "r1" == run_name("r1", "Login")
    assert "login.md" == question_name("login.md", "Login")
    assert RUN == id_named(RUN, [OTHER, RUN])
    assert "2024-12-10-login-00000000" == id_named("2024-12-10-login-00000000", [RUN])


def test_equal_ends() -> None:
    """Of two ids with the same end, the day decides."""
    ids = [name_at(at, 7) for at in (AT, AT.replace(day=3))]
    assert ids == [id_named(run_name(one, "Login"), ids) for one in ids]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a question, and a run of an item that has ended."""
    folder = tmp_path / "shop"
    folder.mkdir()
    workspace = Workspace(folder)
    workspace.open()
    workspace.write_spec_issue("# Which `format`?\n\nCSV or JSON", name=f"{OTHER}.md")
    focus = "The file `.cuggino/backlog/1.md`, with this content:\n\n# Login page\n"
    started = ev.RunStarted(run_id=RUN, kind="run", command="cuggino run", focus=focus)
    run = Writer(Journal.create(workspace.journal, started, at=AT, sync=False))
    run.add(ev.LoopSpecIssue(iteration=1, content="# Which `format`?", filename=f"{OTHER}.md"))
    run.add(ev.RunEnded(state="spec_issue"))
    run.journal.close()
    return folder


@pytest.fixture
def served(project: Path) -> Iterator[Page]:
    """The page of the project."""
    with page(project) as served:
        yield served


@pytest.mark.parametrize(
    "path", [f"w/shop/r/{RUN}", f"p/shop/runs/{RUN}", "p/shop/runs/2024-12-10-login-a723a216"]
)
def test_a_run_after_its_end(served: Page, path: str) -> None:
    """Its name, its id and its address in earlier versions show the page of an ended run."""
    found = served.client.get(f"{served.base}/{path}")
    assert 200 == found.status_code
    assert "Login page" in found.text
    assert re.search(r"/p/shop/runs/2024-12-1[01]-login(-page)?-a723a216$", str(found.url))


@pytest.mark.parametrize(
    "path", [f"w/shop/issues/{OTHER}.md", "p/shop/questions/whatever-a723a217"]
)
def test_a_question(served: Page, path: str) -> None:
    """A question is found by its name and by its address in earlier versions."""
    found = served.client.get(f"{served.base}/{path}")
    assert 200 == found.status_code
    assert "CSV or JSON" in found.text


def test_no_ids_to_be_read(served: Page) -> None:
    """The overview links by names, and names questions by their titles."""
    html = served.get().text
    assert "/p/shop/questions/which-format-a723a217" in html
    assert "-login-page-a723a216" in html
    shown = re.sub(r"<[^>]+>", " ", html)
    assert not UUID.search(shown)
    assert not any(UUID.search(link) for link in re.findall(r'href="([^"]+)"', html))
    assert str(served.server.app.site.places[0].folder) not in shown
