"""The addresses of runs and questions: readable names, to which ids and old addresses lead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuggino import events as ev
from cuggino.storage import Workspace
from cuggino.storage.journal import Journal
from cuggino.web.names import id_named, question_name, run_name
from tests.report.nights import name_at
from tests.vectors import each
from tests.web.journals import AT, Writer
from tests.web.server import Page, page

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
